"""stub"""

import pyarrow as pa


def merge(tables, reduce):
    t = pa.concat_tables(tables)
    schema = t.schema
    groups = {}
    rows = t.to_pylist()
    keyf = lambda r: tuple((r[k] is None, r[k]) for k in reduce.keys)
    if reduce.span:
        a, b = reduce.span
        rows.sort(key=lambda r: (keyf(r), r[a], r[b]))
        out = []
        for r in rows:
            if out and keyf(out[-1]) == keyf(r) and r[a] <= out[-1][b]:
                o = out[-1]
                o[b] = max(o[b], r[b])
                for c, h in reduce.aggregates.items():
                    o[c] = {"sum": lambda x, y: x + y, "max": max, "min": min}[h](o[c], r[c])
            else:
                out.append(dict(r))
        return pa.Table.from_pylist(out, schema=schema)
    for r in rows:
        k = keyf(r)
        if k not in groups:
            groups[k] = dict(r)
        else:
            for c, h in reduce.aggregates.items():
                v = [x for x in (groups[k][c], r[c]) if x is not None]
                groups[k][c] = {"sum": sum, "max": max, "min": min}[h](v) if v else None
    return pa.Table.from_pylist([groups[k] for k in sorted(groups)], schema=schema)
