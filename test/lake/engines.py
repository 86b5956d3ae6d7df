"""Reads datasets with the engines that people have.

engines.py ask [--spark]: one JSON question a line on standard input, one line with {"answer": …} or {"error": message} on
standard output:
{"ask": "read", "place": PLACE} -> {ENGINE: {TABLE AND FOLDERS: digest of the rows}}
{"ask": "sql", "engine": ENGINE, "sql": SQL} -> [rows]

engines.py watch ENGINE PLACE: reads the views again and again until standard input ends, then prints
{"reads": how often, "states": [[folders, digest of the rows]], "errors": [messages]}"""

import glob
import hashlib
import json
import os
import site
import sys
import threading
import time
from collections import defaultdict

ENDPOINT = os.environ["LAKE_ENDPOINT"]
KEY, SECRET = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
VIEWS = ("project", "month", "day", "path", "page", "human", "ai", "total")
COUNTS = ("human", "ai", "total", "pages")
DAYS = ("project", "day", "state", "loaded_at", "human", "ai", "total", "pages")


def is_bucket(place):
    return place.startswith("s3://")


def quoted(text):
    return text.replace("'", "''")


def statements(sql):
    """The statements of a text in which no string has a semicolon."""
    return [statement for statement in sql.split(";") if statement.strip()]


class DuckDB:
    def __init__(self):
        import duckdb

        self.connection = duckdb.connect(config={"allow_unsigned_extensions": True})
        pattern = f"{site.getsitepackages()[0]}/duckdb_extension_httpfs/**/httpfs.duckdb_extension"
        (file,) = glob.glob(pattern, recursive=True)
        self.connection.execute(f"LOAD '{file}'; SET TimeZone = 'UTC'")
        self.connection.execute(
            f"CREATE SECRET (TYPE s3, KEY_ID '{KEY}', SECRET '{SECRET}', ENDPOINT '{ENDPOINT.split('//')[1]}', "
            "USE_SSL false, URL_STYLE 'path', REGION 'us-east-1')"
        )

    def rows(self, place, table, columns):
        files = "*/*/views.parquet" if table == "views" else "*/days.parquet"
        chosen = ", ".join(f"epoch_ms({name})" if name == "loaded_at" else name for name in columns)
        source = f"read_parquet('{quoted(place)}/{table}/{files}', hive_types_autocast = false)"
        return self.connection.execute(f"SELECT {chosen} FROM {source}").fetchall()

    def sql(self, sql):
        return self.connection.execute(sql).fetchall()


class Polars:
    def rows(self, place, table, columns):
        import polars

        options = {"aws_endpoint_url": ENDPOINT, "aws_allow_http": "true", "aws_region": "us-east-1"}
        options |= {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET}
        files = "*/*/views.parquet" if table == "views" else "*/days.parquet"
        folders = {"project": polars.String} | ({"month": polars.String} if table == "views" else {})
        frame = polars.scan_parquet(
            f"{place}/{table}/{files}",
            hive_schema=folders,
            storage_options=options if is_bucket(place) else None,
        )
        chosen = [polars.col(name).dt.epoch("ms") if name == "loaded_at" else polars.col(name) for name in columns]
        return frame.select(chosen).collect().rows()


class PyArrow:
    def rows(self, place, table, columns):
        import pyarrow
        import pyarrow.dataset
        import pyarrow.fs

        folders = [("project", pyarrow.string())] + ([("month", pyarrow.string())] if table == "views" else [])
        directory, system = f"{place}/{table}", None
        if is_bucket(place):
            directory = directory[len("s3://") :]
            system = pyarrow.fs.S3FileSystem(
                endpoint_override=ENDPOINT, access_key=KEY, secret_key=SECRET, region="us-east-1"
            )
        dataset = pyarrow.dataset.dataset(
            directory,
            filesystem=system,
            format="parquet",
            partitioning=pyarrow.dataset.partitioning(pyarrow.schema(folders), flavor="hive"),
        )
        lists = dataset.to_table(columns=list(columns)).to_pydict()
        if "loaded_at" in lists:
            lists["loaded_at"] = [round(at.timestamp() * 1000) for at in lists["loaded_at"]]
        return list(zip(*(lists[name] for name in columns)))


class ClickHouse:
    def __init__(self):
        import chdb.session

        self.session = chdb.session.Session()

    def rows(self, place, table, columns):
        files = "*/*/views.parquet" if table == "views" else "*/days.parquet"
        # Unlike the others, it leaves what is escaped in a folder's name as it is.
        special = {
            "project": "decodeURLComponent(project)",
            "loaded_at": "toUnixTimestamp64Milli(loaded_at::DateTime64(3))",
        }
        chosen = ", ".join(special.get(name, name) for name in columns)
        # Without these, it takes a project id such as 007 for a number.
        types = {"day": "Date", "loaded_at": "DateTime64(6, ''UTC'')"} | dict.fromkeys(COUNTS, "Int64")
        form = ", ".join(f"{name} {types.get(name, 'String')}" for name in columns)
        if is_bucket(place):
            address = f"{ENDPOINT}/{quoted(place[5:])}/{table}/{files}"
            source = f"s3('{address}', '{KEY}', '{SECRET}', 'Parquet', '{form}')"
        else:
            source = f"file('{quoted(place)}/{table}/{files}', 'Parquet', '{form}')"
        return self.sql(f"SELECT {chosen} FROM {source}")

    def sql(self, sql):
        self.session.query("SET output_format_json_quote_64bit_integers = 0")
        for statement in statements(sql):
            answer = self.session.query(statement, "JSONCompactEachRow")
        return [tuple(json.loads(line)) for line in str(answer).splitlines()]


class Spark:
    def __init__(self):
        from pyspark.sql import SparkSession

        versions = "org.apache.hadoop:hadoop-aws:3.5.0,software.amazon.awssdk:s3:2.35.4,software.amazon.awssdk:s3-transfer-manager:2.35.4"
        builder = SparkSession.builder.master("local[2]").config("spark.jars.packages", versions)
        settings = {
            # hadoop-aws asks for the whole SDK, of 600 MB.
            "spark.jars.excludes": "software.amazon.awssdk:bundle",
            "spark.hadoop.fs.s3a.endpoint": ENDPOINT,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.access.key": KEY,
            "spark.hadoop.fs.s3a.secret.key": SECRET,
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
            # The default of hadoop-aws 3.5 remembers the size of a file after it was replaced.
            "spark.hadoop.fs.s3a.input.stream.type": "classic",
            "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
        for name, value in settings.items():
            builder = builder.config(name, value)
        self.session = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")

    def rows(self, place, table, columns):
        chosen = [f"unix_millis({name})" if name == "loaded_at" else name for name in columns]
        frame = self.session.read.parquet(f"{place.replace('s3://', 's3a://')}/{table}").selectExpr(*chosen)
        return [tuple(row) for row in frame.collect()]

    def sql(self, sql):
        for statement in statements(sql):
            rows = self.session.sql(statement).collect()
        return [tuple(row) for row in rows]


ENGINES = {"duckdb": DuckDB, "polars": Polars, "pyarrow": PyArrow, "clickhouse": ClickHouse, "spark": Spark}


def digests(engine, place, table):
    """A digest of the rows in each folder."""
    columns, folders = (VIEWS, 2) if table == "views" else (DAYS, 1)
    lines = defaultdict(list)
    for row in engine.rows(place, table, columns):
        lines[" ".join([table, *row[:folders]])].append("|".join(str(value) for value in row[folders:]))
    return {name: hashlib.md5("\n".join(sorted(found)).encode()).hexdigest() for name, found in lines.items()}


def ask(names):
    engines = {name: ENGINES[name]() for name in names}
    for line in sys.stdin:
        question = json.loads(line)
        try:
            if question["ask"] == "sql":
                answer = engines[question["engine"]].sql(question["sql"])
            else:
                place = question["place"]
                answer = {
                    name: digests(engine, place, "views") | digests(engine, place, "days")
                    for name, engine in engines.items()
                }
            print(json.dumps({"answer": answer}, default=str), flush=True)
        except Exception as error:  # Whatever an engine raises is reported.
            print(json.dumps({"error": f"{type(error).__name__}: {error}"[:20000]}), flush=True)


def watch(name, place):
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    engine, reads, states, errors = ENGINES[name](), 0, set(), []
    took = 0.0
    # Pauses leave the processor, and the server of the bucket, to what is watched.
    while not ended.wait(max(0.2, 3 * took)):
        began = time.monotonic()
        try:
            states.update(digests(engine, place, "views").items())
            reads += 1
        except BaseException as error:  # Whatever an engine raises is reported; Polars raises more than exceptions.
            errors.append(f"{type(error).__name__}: {error}"[:500])
        took = time.monotonic() - began
    print(json.dumps({"reads": reads, "states": sorted(states), "errors": errors}), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "watch":
        watch(*sys.argv[2:4])
    else:
        ask([name for name in ENGINES if name != "spark" or "--spark" in sys.argv])
