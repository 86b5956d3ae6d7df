"""The same export by a short script, as a user could write it: asynchronous requests, one Arrow table a day, into DuckDB.

It checks nothing, and an interruption loses everything. Its arguments are the server, the first day, how many days, and a
directory for its file.
"""

import asyncio
import json
import os
import resource
import sys
from datetime import date, timedelta

import aiohttp
import duckdb
import pyarrow as pa

base_url, first, days, directory = sys.argv[1:5]
first_day = date.fromisoformat(first)
database = duckdb.connect(os.path.join(directory, "views.duckdb"))
database.execute("CREATE TABLE page_views (day DATE, path VARCHAR, human BIGINT, ai BIGINT, total BIGINT)")


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
    of_day = pa.Table.from_pylist(rows)
    database.register("of_day", of_day)
    database.execute("INSERT INTO page_views SELECT ?::DATE, path, human, ai, total FROM of_day", [day])


async def read_all():
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=16)) as session:
        await asyncio.gather(*(read_day(session, first_day + timedelta(index)) for index in range(int(days))))


asyncio.run(read_all())
database.close()

with open(os.environ["BENCH_USAGE"], "w") as file:
    json.dump({"peakMb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}, file)
