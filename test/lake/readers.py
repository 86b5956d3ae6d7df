"""Runs every table, view and macro of a history in the DuckDB on PYTHONPATH: HISTORY -> its version, and what failed."""

import sys

import duckdb

VALUES = {
    "first_day": "'2026-09-01'",
    "last_day": "'2026-10-31'",
    "grain": "'week'",
    "week_start": "'2026-10-26'",
    "before_day": "'2026-11-01'",
    "path": "(SELECT min(path) FROM page_views)",
    "page_path": "(SELECT min(path) FROM page_views)",
}
WITH_DEFAULTS = {"days_earlier", "per"}

history = duckdb.connect(sys.argv[1], read_only=True)
named = history.execute("SELECT table_name FROM duckdb_tables() UNION ALL SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
queries = [f"FROM {name}" for (name,) in named]
macros = history.execute("SELECT function_name, parameters FROM duckdb_functions() WHERE NOT internal AND function_type = 'table_macro'").fetchall()
assert len(macros) >= 5
for name, parameters in macros:
    unknown = set(parameters) - VALUES.keys() - WITH_DEFAULTS
    assert not unknown, f"name a value for {unknown} of {name}"
    queries.append(f"FROM {name}({', '.join(VALUES[each] for each in parameters if each in VALUES)})")
queries.append("FROM changes('2026-09-01', '2026-10-31', days_earlier := 31, per := 'section')")

for query in queries:
    try:
        history.execute(query).fetchall()
    except duckdb.Error as error:
        print(f"{duckdb.__version__}: {query}: {str(error)[:200]}")
print(duckdb.__version__)
