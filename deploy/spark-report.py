"""Questions over all projects of a lake, on Spark: spark-submit --packages io.delta:delta-spark_4.2_2.13:4.4.0 \
  deploy/spark-report.py /srv/lake 2026-11-09

Prints views by month, the most read pages of the week that begins on the given Monday, and the pages that moved most
compared with the mean of the four weeks before."""

import sys

from pyspark.sql import SparkSession

MONTHS = """
SELECT month, sum(human) AS human, sum(ai) AS ai
FROM views
GROUP BY month
ORDER BY month"""

TOP_PAGES = """
SELECT project, path, sum(human) AS human, sum(ai) AS ai, sum(total) AS total
FROM views
WHERE month IN ('{first_month}', '{last_month}') AND day BETWEEN DATE '{monday}' AND DATE '{monday}' + 6
GROUP BY project, path
ORDER BY total DESC, path, project
LIMIT 20"""

# Fewer than 20 views in both periods are chance.
MOVERS = """
SELECT project, path, views, expected
FROM (
  SELECT
    project,
    path,
    sum(CASE WHEN day >= DATE '{monday}' THEN total ELSE 0 END) AS views,
    sum(CASE WHEN day < DATE '{monday}' THEN total ELSE 0 END) / 4 AS expected
  FROM views
  WHERE day BETWEEN DATE '{monday}' - 28 AND DATE '{monday}' + 6
  GROUP BY project, path
)
WHERE greatest(views, expected) >= 20
ORDER BY abs(ln((views + 10) / (expected + 10))) DESC, path, project
LIMIT 20"""


def main(lake, monday):
    spark = (
        SparkSession.builder.appName("readership")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.read.format("delta").load(f"{lake}/views").createOrReplaceTempView("views")
    (sunday,) = spark.sql(f"SELECT DATE '{monday}' + 6").first()
    values = {"monday": monday, "first_month": monday[:7], "last_month": sunday.isoformat()[:7]}
    for question in (MONTHS, TOP_PAGES, MOVERS):
        spark.sql(question.format(**values)).show(50, truncate=False)


if __name__ == "__main__":
    main(*sys.argv[1:3])
