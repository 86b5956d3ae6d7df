"""Reads a lake with every engine that is installed. One JSON question a line on stdin, one JSON answer a line on stdout:
{"ask": "read", "lake": PLACE} -> {ENGINE: [rows, human, total, days]}
{"ask": "open", "lake": PLACE} opens readers; {"ask": "finish"} -> what they read, however long after
{"ask": "files", "lake": PLACE, "day": DAY} -> {ENGINE: [files read, files]}
{"ask": "rows", "lake": PLACE} -> {ENGINE: digest}
{"ask": "operations"} -> {NAME: []}; {"ask": "foreign", "lake": PLACE, "name": NAME} changes the table views
{"ask": "lookup", "lake": PLACE, "path": PATH} -> {ENGINE: [rows of the path]}
{"ask": "sql", "sql": SQL} -> {"duckdb": [rows]}"""

import datetime
import glob
import hashlib
import json
import os
import re
import site
import sys

import chdb
import deltalake
import duckdb
import polars
import pyarrow.compute

ENDPOINT = os.environ["LAKE_ENDPOINT"]
OPTIONS = {
    "aws_endpoint_url": ENDPOINT,
    "aws_allow_http": "true",
    "aws_access_key_id": os.environ["AWS_ACCESS_KEY_ID"],
    "aws_secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"],
    "aws_region": "us-east-1",
}
SUMS = "count(*), sum(human), sum(total)"


def duck():
    connection = duckdb.connect(config={"allow_unsigned_extensions": True})
    for name in ("httpfs", "delta"):
        (file,) = glob.glob(f"{site.getsitepackages()[0]}/duckdb_extension_{name}/**/{name}.duckdb_extension", recursive=True)
        connection.execute(f"LOAD '{file}'")
    connection.execute(
        f"CREATE SECRET (TYPE s3, KEY_ID '{OPTIONS['aws_access_key_id']}', SECRET '{OPTIONS['aws_secret_access_key']}', "
        f"ENDPOINT '{ENDPOINT.split('//')[1]}', USE_SSL false, URL_STYLE 'path', REGION 'us-east-1')"
    )
    return connection


DUCK = duck()


def options(lake):
    return OPTIONS if lake.startswith("s3://") else None


def quoted(lake):
    return lake.replace("'", "''")


def with_polars(lake):
    views = polars.scan_delta(f"{lake}/views", storage_options=options(lake))
    rows, human, total = views.select(polars.len(), polars.sum("human").alias("h"), polars.sum("total")).collect().row(0)
    days = polars.scan_delta(f"{lake}/days", storage_options=options(lake)).select(polars.len()).collect().item()
    return [rows, human, total, days]


def with_deltalake(lake):
    """delta-rs itself: the files that its log names, and their counted rows."""
    table = deltalake.DeltaTable(f"{lake}/views", storage_options=options(lake))
    days = deltalake.DeltaTable(f"{lake}/days", storage_options=options(lake))
    query = deltalake.QueryBuilder().register("views", table).register("days", days)
    read = lambda sql: list(polars.DataFrame(query.execute(sql)).row(0))
    return read(f"SELECT {SUMS} FROM views") + read("SELECT count(*) FROM days")


def with_pyarrow(lake):
    """delta-rs names the files, pyarrow reads them."""
    read = lambda table: deltalake.DeltaTable(f"{lake}/{table}", storage_options=options(lake)).to_pyarrow_table()
    views = read("views")
    sums = [pyarrow.compute.sum(views[column]).as_py() for column in ("human", "total")]
    return [views.num_rows] + sums + [read("days").num_rows]


def with_pandas(lake):
    read = lambda table: deltalake.DeltaTable(f"{lake}/{table}", storage_options=options(lake)).to_pandas()
    views = read("views")
    return [len(views), int(views["human"].sum()), int(views["total"].sum()), len(read("days"))]


def with_duckdb(lake):
    views = DUCK.execute(f"SELECT {SUMS} FROM delta_scan('{quoted(lake)}/views')").fetchone()
    return [int(value) for value in views] + [DUCK.execute(f"SELECT count(*) FROM delta_scan('{quoted(lake)}/days')").fetchone()[0]]


def with_clickhouse(lake):
    def source(table):
        if lake.startswith("s3://"):
            place = f"{ENDPOINT}/{lake[5:]}/{table}/"
            return f"deltaLake('{place}', '{OPTIONS['aws_access_key_id']}', '{OPTIONS['aws_secret_access_key']}')"
        return f"deltaLakeLocal('{quoted(lake)}/{table}')"

    views = str(chdb.query(f"SELECT {SUMS} FROM {source('views')}", "CSV")).strip().split(",")
    return [int(value) for value in views] + [int(str(chdb.query(f"SELECT count(*) FROM {source('days')}", "CSV")))]


ENGINES = {
    "polars": with_polars,
    "deltalake": with_deltalake,
    "pyarrow": with_pyarrow,
    "pandas": with_pandas,
    "duckdb": with_duckdb,
    "clickhouse": with_clickhouse,
}

SPARK = None
if "--spark" in sys.argv:
    from delta import configure_spark_with_delta_pip
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
    )
    SPARK = configure_spark_with_delta_pip(builder).getOrCreate()
    SPARK.sparkContext.setLogLevel("ERROR")


def with_spark(lake):
    if lake.startswith("s3://"):
        return None
    views = SPARK.sql(f"SELECT {SUMS} FROM delta.`{lake}/views`").first()
    return list(views) + [SPARK.sql(f"SELECT count(*) FROM delta.`{lake}/days`").first()[0]]


if SPARK is not None:
    ENGINES["spark"] = with_spark


def read(lake):
    answers = {name: engine(lake) for name, engine in ENGINES.items()}
    return {name: answer for name, answer in answers.items() if answer is not None}


OPEN = {}


def open_readers(lake):
    views = polars.scan_delta(f"{lake}/views", version=deltalake.DeltaTable(f"{lake}/views").version())
    OPEN["polars"] = lambda: list(views.select(polars.len(), polars.sum("human")).collect().row(0))
    table = deltalake.DeltaTable(f"{lake}/views")
    query = deltalake.QueryBuilder().register("views", table)
    OPEN["deltalake"] = lambda: list(polars.DataFrame(query.execute("SELECT count(*), sum(human) AS human FROM views")).row(0))
    if SPARK is not None:
        asked = SPARK.read.format("delta").load(f"{lake}/views").selectExpr("count(*)", "sum(human)")
        # Once planned, the query names its files, like a job that has begun.
        asked._jdf.queryExecution().executedPlan()
        OPEN["spark"] = lambda: [int(value) for value in asked.collect()[0]]
    return list(OPEN)


def files(lake, day):
    plan = DUCK.execute(f"EXPLAIN ANALYZE SELECT sum(total) FROM delta_scan('{quoted(lake)}/views') WHERE day = DATE '{day}'").fetchone()[1]
    seen = re.search(r"Scanning Files: (\d+)/(\d+)", plan)
    table = deltalake.DeltaTable(f"{lake}/views")
    answer = {"duckdb": [int(seen[1]), int(seen[2])]}
    answer["deltalake"] = [len(table.file_uris([("month", "=", day[:7])])), len(table.file_uris())]
    if SPARK is not None:
        frame = SPARK.sql(f"SELECT sum(total) FROM delta.`{lake}/views` WHERE day = DATE '{day}'")
        frame.collect()
        metrics = frame._jdf.queryExecution().executedPlan().toString()
        whole = SPARK.read.format("delta").load(f"{lake}/views")
        narrow = whole.where(f"day = DATE '{day}'")
        answer["spark"] = [len(narrow.select("path").inputFiles()), len(whole.inputFiles())]
        assert "PartitionFilters" in metrics or metrics
    return answer


ROWS = "SELECT project, day, path, human, ai, total FROM"


def rows(lake):
    """A digest of all rows, in any order, as each engine reads them."""
    table = deltalake.DeltaTable(f"{lake}/views", storage_options=options(lake))
    query = deltalake.QueryBuilder().register("views", table)
    found = {
        "deltalake": polars.DataFrame(query.execute(f"{ROWS} views")).rows(),
        "polars": polars.scan_delta(f"{lake}/views").select("project", "day", "path", "human", "ai", "total").collect().rows(),
        "duckdb": DUCK.execute(f"{ROWS} delta_scan('{quoted(lake)}/views')").fetchall(),
        "clickhouse": [
            json.loads(line)
            for line in str(chdb.query(f"{ROWS} deltaLakeLocal('{quoted(lake)}/views')", "JSONCompactEachRow")).splitlines()
        ],
    }
    if SPARK is not None:
        found["spark"] = [tuple(row) for row in SPARK.sql(f"{ROWS} delta.`{lake}/views`").collect()]
    lines = {name: sorted("|".join(str(value) for value in row) for row in each) for name, each in found.items()}
    return {name: hashlib.sha256("\n".join(each).encode()).hexdigest() for name, each in lines.items()}


def lookup(lake, path):
    """How many rows each engine finds by a filter, for which it may skip files and row groups by their statistics."""
    table = deltalake.DeltaTable(f"{lake}/views")
    sql = f"SELECT count(*) FROM {{}} WHERE path = '{path}'"
    found = {
        "deltalake": polars.DataFrame(deltalake.QueryBuilder().register("views", table).execute(sql.format("views"))).item(),
        "polars": polars.scan_delta(f"{lake}/views").filter(polars.col("path") == path).select(polars.len()).collect().item(),
        "pyarrow": table.to_pyarrow_dataset().count_rows(filter=pyarrow.compute.field("path") == path),
        "duckdb": DUCK.execute(sql.format(f"delta_scan('{quoted(lake)}/views')")).fetchone()[0],
        "clickhouse": int(str(chdb.query(sql.format(f"deltaLakeLocal('{quoted(lake)}/views')")))),
    }
    if SPARK is not None:
        found["spark"] = SPARK.sql(sql.format(f"delta.`{lake}/views`")).first()[0]
    return {name: [rows] for name, rows in found.items()}


def junk(project, month):
    day = datetime.date.fromisoformat(f"{month}-02")
    return polars.DataFrame(
        {"project": [project], "day": [day], "path": ["/junk"], "human": [9], "ai": [9], "total": [18], "month": [month]}
    ).to_arrow()


def spark(statement):
    return lambda table: SPARK.sql(statement.replace("LAKE", f"delta.`{table.table_uri.removeprefix('file://').rstrip('/')}`"))


# What other programs do to a table: some keep its rows, some do not, and some forbid to write it.
FOREIGN = {
    "compact": lambda table: table.optimize.compact(),
    "z-order": lambda table: table.optimize.z_order(["path"]),
    "z-order one month": lambda table: table.optimize.z_order(["day"], partition_filters=[("month", "=", "2026-10")]),
    "vacuum": lambda table: table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False),
    "compact and vacuum": lambda table: (table.optimize.compact(), table.vacuum(0, False, False)),
    "checkpoint": lambda table: (table.create_checkpoint(), table.cleanup_metadata()),
    "z-order and checkpoint": lambda table: (table.optimize.z_order(["path"]), table.create_checkpoint()),
    "delete rows": lambda table: table.delete("path LIKE '%-7' AND month = '2026-09'"),
    "delete a month": lambda table: table.delete("month = '2026-10'"),
    "delete everything": lambda table: table.delete(),
    "append": lambda table: deltalake.write_deltalake(table, junk("prj_3", "2026-10"), mode="append"),
    "append another project": lambda table: deltalake.write_deltalake(table, junk("prj_999", "2026-12"), mode="append"),
    "update": lambda table: table.update(updates={"human": "human + 1"}, predicate="project = 'prj_5'"),
    "overwrite a month": lambda table: deltalake.write_deltalake(
        table, junk("prj_1", "2026-09"), mode="overwrite", predicate="month = '2026-09'"
    ),
    "restore": lambda table: table.restore(1),
    "set a property": lambda table: table.alter.set_table_properties({"delta.checkpointInterval": "20"}),
    "forbid removal": lambda table: table.alter.set_table_properties({"delta.appendOnly": "true"}),
    "add a constraint": lambda table: table.alter.add_constraint({"few": "human >= 0"}),
}
ON_SPARK = {
    "OPTIMIZE": spark("OPTIMIZE LAKE ZORDER BY (path)"),
    "DELETE": spark("DELETE FROM LAKE WHERE path LIKE '%-7'"),
    "MERGE": spark("MERGE INTO LAKE AS t USING (SELECT 1 AS one) ON t.project = 'prj_2' WHEN MATCHED THEN UPDATE SET ai = ai + 1"),
    "deletion vectors": spark("ALTER TABLE LAKE SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"),
}
if SPARK is not None:
    FOREIGN |= ON_SPARK


def foreign(lake, name):
    FOREIGN[name](deltalake.DeltaTable(f"{lake}/views"))
    return [name]


ASKED = {
    "rows": lambda question: rows(question["lake"]),
    "operations": lambda question: {name: [] for name in FOREIGN},
    "foreign": lambda question: foreign(question["lake"], question["name"]),
    "lookup": lambda question: lookup(question["lake"], question["path"]),
    "read": lambda question: read(question["lake"]),
    "open": lambda question: open_readers(question["lake"]),
    "finish": lambda question: {name: finish() for name, finish in OPEN.items()},
    "sql": lambda question: {"duckdb": [len(DUCK.execute(question["sql"]).fetchall())]},
    "files": lambda question: files(question["lake"], question["day"]),
}

for line in sys.stdin:
    question = json.loads(line)
    try:
        answer = ASKED[question["ask"]](question)
    except Exception as error:  # The other side says which question it was.
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
