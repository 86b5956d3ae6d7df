"""The same export by dlt: asynchronous requests, one Arrow table a day, into DuckDB.

Its arguments are the server, the first day, how many days, and a directory for its files.
"""

import asyncio
import json
import os
import resource
import sys
from datetime import date, timedelta

import aiohttp
import dlt
import pyarrow as pa

base_url, first, days, directory = sys.argv[1:5]
first_day = date.fromisoformat(first)


async def read_day(session, day):
    url = f"{base_url}/v1/analytics/prj_0/views"
    rows, offset, has_more = [], 0, True
    while has_more:
        query = {"dateFrom": str(day), "dateTo": str(day + timedelta(1)), "limit": 250, "offset": offset}
        async with session.get(url, params=query, headers={"authorization": "Bearer bench"}) as response:
            page = json.loads(await response.read())
        rows += page["views"]
        has_more = page["hasMore"]
        offset += 250
    table = pa.Table.from_pylist(rows)
    return table.append_column("day", pa.array([day] * len(rows), pa.date32()))


@dlt.resource(name="page_views", write_disposition="append")
async def page_views():
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=16)) as session:
        reading = [
            asyncio.ensure_future(read_day(session, first_day + timedelta(index))) for index in range(int(days))
        ]
        for day in asyncio.as_completed(reading):
            yield await day


pipeline = dlt.pipeline(
    pipeline_name="bench",
    pipelines_dir=os.path.join(directory, "pipelines"),
    destination=dlt.destinations.duckdb(os.path.join(directory, "views.duckdb")),
    dataset_name="bench",
)
pipeline.run(page_views())

with open(os.environ["BENCH_USAGE"], "w") as file:
    json.dump({"peakMb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}, file)
