"""Reads a lake with every engine that is installed. One JSON question a line on stdin, one JSON answer a line on stdout:
{"ask": "read", "lake": PLACE} -> {ENGINE: [rows, human, total, days]}
{"ask": "open", "lake": PLACE} opens readers; {"ask": "finish"} -> what they read, however long after
{"ask": "files", "lake": PLACE, "day": DAY} -> {ENGINE: [files read, files]}
{"ask": "sql", "sql": SQL} -> {"duckdb": [rows]}"""

import glob
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


ASKED = {
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
