#!/usr/bin/env python3
"""Show what is in a CSV or TSV file: columns, kinds, gaps, doubles; filter, group and sum. Standard library only."""

# ruff: noqa: T201 - what it prints is its result
import argparse
import csv
import io
import sys
from collections import Counter, defaultdict
from decimal import Decimal, InvalidOperation
from pathlib import Path


def text_of(path):
    """The file's text, and the encoding that it was read in."""
    raw = Path(path).read_bytes()
    marked = raw[:2] in (b"\xff\xfe", b"\xfe\xff")
    for encoding in ("utf-16",) if marked else ("utf-8-sig", "cp1252"):
        try:
            return raw.decode(encoding), encoding
        except UnicodeDecodeError:
            continue
    return raw.decode("latin-1"), "latin-1"


def separator_of(text):
    """The sign that stands in the header, and as often in most of the first lines."""
    lines = [line for line in text.splitlines()[:50] if line.strip()] or [""]

    def even(sign):
        wanted = lines[0].count(sign)
        return wanted and sum(line.count(sign) == wanted for line in lines), wanted

    return max(",;\t|", key=even)


def number(cell, decimal):
    """The cell as a Decimal, or None. `decimal` is the sign before the fraction."""
    bare = cell.strip(" €$£%\u00a0\u202f").translate(dict.fromkeys(map(ord, "\u00a0\u202f ' ")))
    negative = bare.startswith("(") and bare.endswith(")")
    bare = bare.strip("()").replace("," if decimal == "." else ".", "").replace(",", ".")
    try:
        value = Decimal(bare)
    except InvalidOperation:
        return None
    return None if not value.is_finite() else -value if negative else value


def decimal_of(rows):
    """A comma that is followed by one or two digits at the end, more often than a point is, is a decimal comma."""
    votes = Counter()
    for cell in (cell.strip() for row in rows[:1000] for cell in row):
        for sign in ",.":
            head, found, tail = cell.rpartition(sign)
            whole = head.strip("-+(€$£ ").replace(".", "").replace(",", "")
            if found and tail.rstrip(") €$£%").isdigit() and len(tail) != 3 and whole.isdigit():
                votes[sign] += 1
    return "," if votes[","] > votes["."] else "."


def describe(header, rows, decimal):
    for place, name in enumerate(header):
        cells = [row[place].strip() for row in rows if len(row) > place]
        filled = [cell for cell in cells if cell]
        numbers = [value for cell in filled if (value := number(cell, decimal)) is not None]
        said = f"{len(filled)} filled, {len(rows) - len(filled)} empty, {len(set(filled))} different"
        if filled and len(numbers) == len(filled):
            said += f"; numbers {min(numbers)} to {max(numbers)}, sum {sum(numbers)}"
        elif numbers and len(numbers) * 2 > len(filled):
            odd = next(cell for cell in filled if number(cell, decimal) is None)
            said += f"; {len(numbers)} numbers, {len(filled) - len(numbers)} not (such as {odd!r})"
        else:
            said += "; " + ", ".join(f"{cell!r} {count}x" for cell, count in Counter(filled).most_common(3))
        print(f"  {name}: {said}")


def column(header, name):
    if name not in header:
        sys.exit(f"there is no column {name!r}. There are: {', '.join(header)}")
    return header.index(name)


def group(header, rows, by, summed, decimal):
    key, place = column(header, by), column(header, summed) if summed else None
    counts, totals, skipped = Counter(), defaultdict(Decimal), 0
    for row in rows:
        counts[row[key]] += 1
        if place is not None:
            value = number(row[place], decimal)
            skipped += value is None
            totals[row[key]] += value or 0
    for name, count in sorted(counts.items(), key=lambda item: (-totals[item[0]], -item[1], item[0])):
        print("\t".join([name or "(empty)", str(count), *([str(totals[name])] if summed else [])]))
    print("\t".join(["all", str(len(rows)), *([str(sum(totals.values()))] if summed else [])]))
    if skipped:
        print(f"{skipped} rows have no number in {summed!r} and count as nothing")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--where", action="append", default=[], metavar="COLUMN=VALUE", help="only these rows")
    parser.add_argument("--group", metavar="COLUMN", help="count rows by the values of a column")
    parser.add_argument("--sum", metavar="COLUMN", help="with --group: add up this column")
    parser.add_argument("--rows", type=int, default=0, metavar="N", help="print the first N rows")
    parser.add_argument("--separator", help="what parts the cells (found out, if not given)")
    wanted = parser.parse_args()
    try:
        text, encoding = text_of(wanted.file)
    except OSError as error:
        sys.exit(f"cannot read {wanted.file}: {error.strerror}")
    separator = (wanted.separator or separator_of(text)).replace("\\t", "\t")
    table = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if any(map(str.strip, row))]
    if not table:
        sys.exit(f"{wanted.file} is empty")
    header, rows = [cell.strip() for cell in table[0]], table[1:]
    ragged = [number for number, row in enumerate(rows, start=2) if len(row) != len(header)]
    rows = [row + [""] * (len(header) - len(row)) for row in rows]
    decimal = decimal_of(rows)
    for name, _, value in (given.partition("=") for given in wanted.where):
        place = column(header, name)
        rows = [row for row in rows if row[place].strip() == value]
    print(f"{wanted.file}: {len(rows)} rows, {len(header)} columns")
    print(f"read as {encoding}, separator {separator!r}, decimal {decimal!r}")
    if ragged:
        print(f"{len(ragged)} rows have not {len(header)} cells, the first is row {ragged[0]}")
    if wanted.group:
        group(header, rows, wanted.group, wanted.sum, decimal)
    elif not wanted.rows:
        describe(header, rows, decimal)
        doubles = sum(count - 1 for count in Counter(map(tuple, rows)).values())
        print(f"{doubles} rows are doubles of another" if doubles else "no row is there twice")
    for row in rows[: wanted.rows]:
        print("\t".join(row))


if __name__ == "__main__":
    main()
