"""Small tables as people have them are read right, or refused with the flag that decides.

A table is written as names and generators of their cells:
`T("time", clock(0.1), "ax", wave(1))` is a CSV of 12 rows.
"""

import math
from datetime import datetime, timedelta

import pytest

from anharmonic.data.own import odd_channels

CASES = {}
# What is not said of a table is not there.
PLAIN = dict.fromkeys(("target", "id", "time", "group", "per")) | {"ignored": []}


def case(name, text, *, mode="train", given=None, file="mine.csv", noted=(), **right):
    """Adds a table, how it is asked for, and the right reading, as `check` knows it.

    `given` are fields of `Columns` that the user says, `noted` channels that a summary names as
    odd; `refuse` is text in the message for no reading.
    """
    assert name not in CASES, name
    if "ignored" in right:
        right["ignored"] = sorted(right["ignored"])
    CASES[name] = text, {"mode": mode, "name": file, **(given or {})}, right, noted


def T(*pairs, n=12, sep=",", header=True, comma=False):
    names, makers = pairs[::2], pairs[1::2]
    columns = [list(maker(n)) for maker in makers]
    rows = [[str(cell) for cell in row] for row in zip(*columns, strict=True)]
    if comma:
        rows = [[cell.replace(".", ",") for cell in row] for row in rows]
    lines = [sep.join(names)] * header + [sep.join(row) for row in rows]
    return "\n".join(lines) + "\n"


def clock(step, start=0.0, digits=3):
    return lambda n: [f"{start + i * step:.{digits}f}" for i in range(n)]


def count(start=0, step=1):
    return lambda n: [start + i * step for i in range(n)]


def wave(k):
    return lambda n: [round(k * math.sin(1.3 * i * k + k) + 0.003 * k, 3) for i in range(n)]


def whole(k):
    return lambda n: [(7 * k + i * i * 5 + 3 * i) % 11 for i in range(n)]


def blocks(*words):
    return lambda n: [words[i * len(words) // n] for i in range(n)]


def turns(*words):
    return lambda n: [words[i % len(words)] for i in range(n)]


def again(maker, length):
    """The cells of `length` rows, over and over."""
    return lambda n: [cell for _ in range(n // length) for cell in maker(length)]


def listed(*cells):
    return lambda n: list(cells)


def mixed(maker):
    """The cells in another order; the same for every column of so many rows."""
    return lambda n: [maker(n)[(5 * i + 3) % n] for i in range(n)]


def stamps(form, start="2024-01-20", **step):
    first, step = datetime.fromisoformat(start), timedelta(**(step or {"days": 1}))
    return lambda n: [(first + i * step).strftime(form) for i in range(n)]


def months(form, year=2019):
    return lambda n: [datetime(year + i // 12, 1 + i % 12, 1).strftime(form) for i in range(n)]


def quarters(form, year=1990):
    return lambda n: [form.format(y=year + i // 4, q=1 + i % 4) for i in range(n)]


def steps(prefix, k, start=0):
    """Names and cells of k numbered columns; the number is where the prefix has {}, or last."""
    form = prefix if "{}" in prefix else prefix + "{}"
    return [part for i in range(k) for part in (form.format(start + i), wave(i + 1))]


# fmt: off
# Columns, as names and cells, that many tables have.
TIME = ("time", clock(0.01))
AXES = ("ax", wave(1), "ay", wave(2))
AB = ("a", wave(1), "b", wave(2))
LABEL = ("label", blocks("rest", "walk"))
XY = ("label", blocks("x", "y"))
XYX = ("label", blocks("x", "y", "x"))
TURNS = ("label", turns("a", "b"))
DAYS = stamps("%Y-%m-%d")
HOURS = stamps("%Y-%m-%d %H:%M:%S", hours=1)
# Times and counts that begin anew after four rows, as three recordings have.
CLOCK4, COUNT4 = again(clock(0.1), 4), again(count(), 4)
TIMED3 = (blocks(1, 2, 3), "time", CLOCK4)

# What is right for many tables.
ONE = {"layout": "long", "lengths": [12], "target": "label", "per": "step"}
DATED = ONE | {"channels": ("a",)}
THREE = {"layout": "long", "lengths": [4, 4, 4]}
NAMED = THREE | {"target": "label", "per": "sequence"}
WIDE = {"layout": "wide", "target": "label", "per": "sequence"}
SERIES = {"mode": "forecast", "layout": "long", "lengths": [12]}
PANEL = {"mode": "forecast"} | THREE
TABLE = {"mode": "forecast", "layout": "wide"}

# A recording in one table: times by many names, in several languages, with units.
for name in (
    "time", "Time", "TIME", "Time [s]", "time_s", "Time (ms)", "time(ms)", "t", "t [s]", "t_ms",
    "timestamp", "Timestamp (s)", "TimeStamp", "time_stamp", "ts", "sec", "seconds", "Seconds",
    "elapsed", "elapsed_time", "Elapsed Time (s)", "msec", "millis", "relative_time", "time.sec",
    "Zeit", "Zeit [s]", "Temps (s)", "tiempo", "tempo_s", "czas", "aika", "tid [ms]", "время",
    "Время, с", "时间", "時間", "시간", "zaman", "čas", "sample_time",
):
    case(f"recording with times called {name!r}",
         T(f'"{name}"', clock(0.01), *AXES, *LABEL), **ONE, time=name, channels=("ax", "ay"))
for name in ("sample", "Sample", "sample #", "sample_number", "frame", "Frame No", "step", "tick",
             "sampleIndex", "frame_id"):
    case(f"recording with a counter called {name!r}", T(name, count(), "MLII", whole(1),
         "V5", whole(2), *LABEL), **ONE, time=name, channels=("MLII", "V5"))
case("labels without a time may be independent rows", T(*AXES, *LABEL), refuse="--layout long")
case("the same, said to be a recording",
     T(*AXES, *LABEL), **ONE, given={"layout": "long"}, channels=("ax", "ay"))
case("a counter beside the times is left out", T("sample", count(), *TIME, "ecg", wave(1), *LABEL),
     **ONE, time="time", channels=("ecg",), ignored=("sample",))
case("columns of the WFDB tools: quotes and a row of units",
     "'sample #','MLII','V5','label'\n'','(mV)','(mV)',''\n" + T("", count(), "", wave(1),
     "", wave(2), "", blocks("N", "V"), header=False),
     **ONE, time="sample #", channels=("MLII", "V5"))
case("names in a comment, as numpy.savetxt writes them",
     "# time ax ay\n" + T("", clock(0.5), "", wave(1), "", wave(2), sep=" ", header=False),
     **SERIES, time="time", channels=("ax", "ay"), file="mine.txt")
case("lines above the names", "Sampling rate,100 Hz\nDevice,X7\n\n" + T(*TIME, *AXES, *LABEL),
     **ONE, time="time", channels=("ax", "ay"))
for name in ("activity", "Activity", "class", "Klasse", "classe", "etiqueta", "annotation",
             "gesture", "is_anomaly", "anomaly", "activity_id", "state", "метка", "标签",
             "ground_truth"):
    case(f"classes called {name!r}", T(*TIME, *AXES, name, blocks(0, 1)),
         layout="long", time="time", target=name, per="step", channels=("ax", "ay"), lengths=[12])
case("two columns of classes must be told apart", T(*TIME, "ax", wave(1), "activity", blocks(0, 1),
     "state", turns(0, 1)), refuse="--target-column")
case("text that is the same everywhere says nothing", T("device", turns("X7"), *TIME, "ax", wave(1),
     *LABEL), **ONE, time="time", channels=("ax",), ignored=("device",))
case("times that fall back without an id", T("time", CLOCK4, *AXES, *LABEL), refuse="--id-column")

# Several recordings in one table.
for name in ("id", "ID", "series", "series_id", "case_id", "trial", "unique_id", "recording_id",
             "run", "session", "file", "filename", "engine", "unit", "episode", "rep",
             "Kennung", "identifiant", "experiment_id", "ICUSTAY_ID"):
    case(f"recordings called {name!r}",
         T(name, *TIMED3, *AB, *XYX), **NAMED, id=name, time="time", channels=("a", "b"),
         group=name if name == "recording_id" else None)
for name in ("subject", "patient", "participant", "Proband", "person"):
    case(f"one recording of every {name!r}", T(name, blocks("p1", "p2", "p3"), "time", CLOCK4, *AB,
         *XYX), **NAMED, id=name, group=name, time="time", channels=("a", "b"))
case("trials that are numbered within every subject", T("subject", blocks("p", "q"),
     "trial", again(blocks(1, 2), 6), "time", again(clock(0.1), 3), "a", wave(1),
     "label", blocks("x", "y", "y", "x")), layout="long", id="trial", group="subject", time="time",
     target="label", per="sequence", channels=("a",), lengths=[3, 3, 3, 3])
case("recordings in turns, rows of all mixed", T("id", mixed(blocks(3, 1, 2)), "t", mixed(COUNT4),
     "a", mixed(count(100)), "label", mixed(blocks("x", "y", "x"))),
     **NAMED, id="id", time="t", channels=("a",),
     x=[*range(100, 104), *range(108, 112), *range(104, 108)])
case("labels of one recording that differ, said to be per step", T("id", *TIMED3, "a", wave(1),
     "label", listed(*"xxxxyyzyxxxx")), **THREE, given={"labels": "step"}, id="id", time="time",
     target="label", per="step", channels=("a",))
case("a value per recording", T("id", *TIMED3, "a", wave(1), "target", blocks(0.5, 1.5, 2.5)),
     **THREE, id="id", time="time", target="target", per="sequence", channels=("a",))
case("a value per step", T("id", *TIMED3, "a", wave(1), "target", wave(3)),
     **THREE, id="id", time="time", target="target", per="step", channels=("a",))
case("numbers that stay the same in a recording are channels, and named",
     T("id", *TIMED3, "age", blocks(30, 41, 55), "a", wave(1), *XYX),
     **NAMED, id="id", time="time", channels=("age", "a"), noted=("age",))
case("text that stays the same in a recording, beside the label", T("id", *TIMED3,
     "sex", blocks("f", "m", "f"), "a", wave(1), *XYX), refuse="--ignore")
case("turbofan engines: s_1 ... beside settings", T("unit_number", blocks(1, 2, 3),
     "time_in_cycles", again(count(1), 4), "setting_1", wave(7), "setting_2", wave(8),
     *steps("s_", 4, 1), "label", blocks(0, 1, 0)), **NAMED, id="unit_number",
     time="time_in_cycles", channels=("setting_1", "setting_2", "s_1", "s_2", "s_3", "s_4"))
case("channels ch1 ... of a recording", T("time", clock(0.004), *steps("ch", 8, 1), *LABEL),
     **ONE, time="time", channels=tuple(f"ch{i}" for i in range(1, 9)))
case("channels ch1 ... without times", T(*steps("ch", 8, 1), *LABEL), refuse="--layout")
case("ids that never come again and named values",
     T("id", count(1), "time", clock(0.1), *AB, "label", turns("x", "y")), refuse="--layout")
case("two ids", T("bed_id", blocks(1, 2, 3), "ward_id", blocks(1, 2), "t", COUNT4, "a", wave(1),
     *LABEL), refuse="--id-column")

# A row per sequence.
for named, length, columns in (
    ("v0 ...", 5, (*TURNS, *steps("v", 5))),
    ("1 ...", 5, (*TURNS, *steps("", 5, 1))),
    ("t0 ..., text last", 5, (*steps("t", 5), "species", turns("a", "b"))),
    ("step_0 ...", 6, (*TURNS, *steps("step_", 6))),
    ("V2 ... as R names them", 6, (*TURNS, *steps("V", 6, 2))),
    ("X1 ... with an index", 8, ("", count(), *steps("X", 8, 1), "y", turns(1, 2, 3))),
    ("seconds", 3, (*TURNS, "0.0", wave(1), "0.5", wave(2), "1.0", wave(3))),
    ("ms", 3, (*TURNS, "0 ms", wave(1), "10 ms", wave(2), "20 ms", wave(3))),
    ("x[0] ...", 5, ("class", turns(0, 1), *steps("x[{}]", 5))),
    ("ecg_0 ... ecg_139", 140, (*TURNS, *steps("ecg_", 140))),
    ("val.0 ...", 5, (*TURNS, *steps("val.", 5))),
    ("Schritt 1 ...", 5, ("target", turns("a", "b"), *steps("Schritt ", 5, 1))),
):
    (target,) = {"label", "class", "species", "target", "y"} & set(columns[::2])
    case(f"wide, steps {named}", T(*columns),
         layout="wide", target=target, per="sequence", lengths=[length] * 12)
case("wide, sorted as text: v0, v1, v10, v2", T(*TURNS,
     *[p for i in sorted(map(str, range(12))) for p in (f"v{i}", count(100 * int(i)))], n=2),
     **WIDE, lengths=[12, 12], x=[100 * i for i in range(12)] + [100 * i + 1 for i in range(12)])
case("wide, two channels, the second in another order", T("label", turns("u", "v"), "a_0", count(0),
     "a_1", count(1), "a_2", count(2), "b_0", count(10), "b_2", count(12), "b_1", count(11), n=2),
     **WIDE, channels=("a", "b"), lengths=[3, 3], x=[0, 1, 2, 1, 2, 3])
case("wide, unequal steps of two channels",
     T("label", turns("u", "v"), *steps("a_", 4), *steps("b_", 3)), refuse="'b'")
case("wide, a step is lacking", T("label", turns("u", "v"), "v0", wave(1), "v1", wave(2),
     "v3", wave(3), "v4", wave(4)), refuse="v2")
case("wide, one number that is no step: the target?",
     T(*steps("v", 6), "quality", wave(9)), refuse="--target-column")
case("wide, begun at dates, not in their order",
     T("subject", turns("p", "q", "r"), "date", mixed(stamps("%Y-%m-%d", days=5)), *steps("v", 5),
     *TURNS), **WIDE, group="subject", time="date", lengths=[5] * 12)
case("a row per hour with numbered columns: steps or channels?",
     T("time", stamps("%Y-%m-%d %H:%M", hours=1), *steps("v", 5), *LABEL), refuse="--layout")
case("a row per month and a column per month name", T("year", count(1990), "Jan", wave(1),
     "Feb", wave(2), "Mar", wave(3), "Apr", wave(4)), mode="forecast", refuse="--layout")
case("features of a table are no steps",
     T(*steps("feature_", 6), "label", turns(0, 1)), refuse="--layout")
case("three axes of space have no target", T(*TIME, "x", wave(1), "y", wave(2), "z", wave(3)),
     refuse="--target-column")
case("lists of labels of 20 digits",
     T("label", turns("12345678901234567890", "12345678901234567891"), *steps("v", 4)),
     **WIDE, lengths=[4] * 12, y=["12345678901234567890", "12345678901234567891"] * 6)

# Without names.
case("whole numbers all over, the class first and the last pixel always 0",
     T("", turns(5, 3, 1), "", whole(1), "", whole(2), "", whole(3), "", turns(0), header=False,
     n=30), layout="wide", target="1", per="sequence", lengths=[4] * 30)
case("whole numbers all over, two columns could be classes", T("", turns(5, 3, 1), "", whole(1),
     "", whole(2), "", turns(0, 1), header=False), refuse="--target-column")
case("numbered rows are no classes",
     T("", count(), "", wave(1), "", wave(2), header=False), refuse="--target-column")
case("a clock without names", T("", clock(0.01), "", wave(1), "", wave(2),
     "", blocks("rest", "walk"), header=False), refuse="--layout")

# Dates.
for form, says in (
    ("%Y-%m-%d", "ISO"), ("%Y/%m/%d", "slashes"), ("%d/%m/%Y", "day first"),
    ("%m/%d/%Y", "month first"), ("%d.%m.%Y", "dots"), ("%d.%m.%y", "short years"),
    ("%d-%b-%Y", "names of months"), ("%b %d %Y", "names of months in front"),
    ("%Y%m%d", "eight digits"), ("%d.%m.%Y %H:%M", "dots and hours"),
    ("%m/%d/%Y %I:%M:%S %p", "AM and PM"), ("%Y-%m-%dT%H:%M:%SZ", "UTC"),
    ("%Y-%m-%d %H:%M:%S+01:00", "an offset"), ("%Y%m%d%H%M%S", "fourteen digits"),
    ("%A %d %B %Y", "weekdays"), ("%Y.%m.%d", "years and dots"),
):
    case(f"dates: {says}", T("date", stamps(form), "a", wave(1), *LABEL), **DATED, time="date",
         begins="2024-01-19" if "+" in form else "2024-01-20", interval=86400.0)
UNCLEAR = ["01/02", "03/01", "02/04", "05/03", "04/06", "06/05", "08/08", "07/07"]
UNCLEAR = T("date", listed(*(f"{date}/2024" for date in UNCLEAR)), "a", wave(1), *XY, n=8)
case("dates: day or month first?", UNCLEAR, refuse="--date-format")
case("dates: weeks of eight digits", T("week", stamps("%Y%m%d", days=7), "a", wave(1), *LABEL),
     **DATED, time="week", begins="2024-01-20", interval=7 * 86400.0)
case("a date and a time of day",
     T("Date", stamps("%d/%m/%Y", hours=8), "Time", stamps("%H.%M.%S", hours=8), "a", wave(1),
     *LABEL, sep=";"), **DATED, time="Date Time", begins="2024-01-20", interval=8 * 3600.0)
case("year, month, day and hour in columns",
     T("No", count(1), "year", stamps("%Y", hours=1), "month", stamps("%m", hours=1),
     "day", stamps("%d", hours=1), "hour", stamps("%H", hours=1), "a", wave(1), *LABEL),
     **DATED, time="year month day hour", begins="2024-01-20", interval=3600.0, ignored=("No",))
case("a clock of the day", T("time", stamps("%H:%M:%S.%f", "2024-01-20 10:00", seconds=0.5),
     "a", wave(1), *LABEL), **DATED, time="time", interval=0.5)
case("seconds since 1970", T("timestamp", count(1706000000, 60), "a", wave(1), *LABEL),
     **DATED, time="timestamp", interval=60.0)
TIMES = ["1:00", "1:30", "2:00", "2:30", "2:00", "2:30", "3:00", "3:30"]
case("a repeated hour of local time",
     T("time", listed(*(f"2024-10-27 0{time}" for time in TIMES)), "a", wave(1), *XY, n=8),
     refuse="UTC")
TWICE = ("time", listed(0, 1, 2, 2, 3, 4), "a", count())
case("a row twice", T(*TWICE, *XY, n=6), refuse="--duplicates")
case("a row twice, the first wanted", T(*TWICE, *XY, n=6), **DATED | {"lengths": [5]},
     given={"duplicates": "first"}, time="time", x=[0, 1, 2, 4, 5])
case("a row twice, the mean wanted", T(*TWICE, "target", wave(1), n=6),
     **DATED | {"lengths": [5], "target": "target"},
     given={"duplicates": "mean"}, time="time", x=[0, 1, 2.5, 4, 5])

# Forecasts: one series.
case("a column without a name", T("", wave(1), header=False), **SERIES, x=wave(1)(12))
case("Series.to_csv(): an index and a 0", T("", count(), "0", wave(1)), **SERIES, channels=("0",))
case("months in a mixed order", T("Month", mixed(months("%Y-%m")), "Passengers", mixed(count(100))),
     **SERIES, time="Month", channels=("Passengers",), x=list(range(100, 112)), begins="2019-01-01")
for how, name, form in (
    ("by name", "Month", "%b %Y"), ("by short years", "month", "%b-%y"),
    ("as the World Bank writes them", "period", "%YM%m"), ("of six digits", "month", "%Y%m"),
):
    case(f"months {how}", T(name, months(form), "sales", wave(1)),
         **SERIES, time=name, channels=("sales",), begins="2019-01-01")
for form in ("{y} Q{q}", "{y}Q{q}", "Q{q} {y}", "{y}-Q{q}"):
    case(f"quarters as {form!r}", T("quarter", quarters(form), "gdp", wave(1)),
         **SERIES, time="quarter", channels=("gdp",), begins="1990-01-01")
case("a year and a quarter in columns",
     T("year", quarters("{y}"), "quarter", quarters("{q}"), "realgdp", wave(1), "infl", wave(2)),
     **SERIES, time="year quarter", channels=("realgdp", "infl"), begins="1990-01-01")
case("years with a point", T("YEAR", clock(1, 1700, 1), "SUNACTIVITY", wave(9)),
     **SERIES, time="YEAR", channels=("SUNACTIVITY",))
case("labels are not forecast",
     T("timestamp", HOURS, "value", wave(1), "is_anomaly", turns(0, 0, 0, 1)),
     **SERIES, time="timestamp", target="is_anomaly", channels=("value",))
case("meters MT_001 ... beside dates without a name", T("", stamps("%Y-%m-%d %H:%M:%S", minutes=15),
     "MT_001", wave(1), "MT_002", wave(2), "MT_003", wave(3), sep=";", comma=True),
     **SERIES, time="", channels=("MT_001", "MT_002", "MT_003"))
case("several columns without names",
     T("", wave(1), "", wave(2), "", wave(3), header=False), mode="forecast", refuse="--layout")
case("weekdays beside dates are not forecast",
     T("date", DAYS, "weekday", turns(1, 2, 3, 4, 5, 6, 7), "load", wave(1)),
     **SERIES, time="date", channels=("load",), ignored=("weekday",))

# Forecasts: many series.
case("stores and goods", T("", count(), "date", again(DAYS, 3), "store_id", blocks("T1", "T2"),
     "cat_id", blocks("F", "G", "F", "G"), "sales", wave(1)), mode="forecast", layout="long",
     id="cat_id", group="store_id", time="date", channels=("sales",), lengths=[3, 3, 3, 3])
case("countries with their codes", T("Country", blocks("France", "Spain", "Italy"),
     "Code", blocks("FR", "ES", "IT"), "Year", again(count(1990), 4), "gdp", wave(1)),
     **PANEL, id="Country", time="Year", channels=("gdp",), ignored=("Code",))
case("nixtla's names", T("unique_id", blocks("A", "B", "C"), "ds", again(months("%Y-%m-%d"), 4),
     "y", wave(1)), **PANEL, id="unique_id", time="ds", channels=("y",))
case("M4: a row per series",
     '"V1","V2","V3","V4","V5"\n"Y1",1.5,2,3,4\n"Y2",5,6,7,\n"Y3",8,9,10,11\n',
     **TABLE, id="V1", lengths=[4, 3, 4])
WORLD = (
    '"Data Source","World Development Indicators",\n\n"Last Updated Date","2024-06-28",\n\n'
    '"Country Name","Country Code","Indicator Name","Indicator Code","1960","1961","1962","1963",\n'
    '"Aruba","ABW","Population","SP.POP","54608","55811","56682","57475",\n'
    '"Chad","TCD","Population","SP.POP","3","4","5","6",\n'
    '"Peru","PER","Population","SP.POP","7","8","9","",\n'
)
case("the World Bank's years in columns", WORLD, **TABLE, id="Country Name", lengths=[4, 4, 3],
     ignored=("Country Code", "Indicator Name", "Indicator Code"))
case("days in columns",
     "Province,Lat,Long,1/22/20,1/23/20,1/24/20,1/25/20\nHubei,30.9,112.2,1,2,4,7\n"
     "Tibet,31.6,88.0,2,2,3,5\n",
     **TABLE, id="Province", lengths=[4, 4], ignored=("Lat", "Long"))
case("dates that come again without a name for the series",
     T("date", again(DAYS, 4), "sales", wave(1)), mode="forecast", refuse="--id-column")

# Frequent forms of other packages.
case("WISDM without names",
     "33,Jogging,49105962326000,-0.69,12.68,0.50\n33,Jogging,49106062271000,5.0,11.2,0.95\n"
     "33,Walking,49106112167000,4.9,10.8,-0.1\n34,Walking,49106222305000,-0.6,18.5,3.0\n",
     refuse="--")

# Found by a second look at what people publish.
case("a date and an hour in columns",
     T("Date", lambda n: [f"2024-01-{20 + i // 4:02d}" for i in range(n)],
     "Hour", lambda n: [i % 4 for i in range(n)], "load", wave(1)),
     **SERIES, time="Date Hour", channels=("load",), begins="2024-01-20")
case("WISDM with names: users whose clocks go on",
     T("user", blocks(33, 34), "activity", blocks("Jog", "Walk", "Jog", "Walk"),
     "timestamp", count(49105962326000, 50000000), "x-axis", wave(1), "y-axis", wave(2),
     "z-axis", wave(3)), layout="long", id="user", group="user", time="timestamp",
     target="activity", per="step", channels=("x-axis", "y-axis", "z-axis"), lengths=[6, 6])
case("the user of every experiment is its group", T("user", blocks(1, 2, 3),
     "experiment", blocks(1, 2, 3), "activity", blocks("w", "s", "w"), "ax", wave(1)),
     **THREE, id="experiment", group="user", target="activity", per="sequence", channels=("ax",))
case("OpenBCI: remarks, a counter that wraps, two clocks",
     "%OpenBCI Raw EEG Data\n%Number of channels = 4\n" + T("Sample Index", again(count(), 6),
     "EXG Channel 0", wave(1), "EXG Channel 1", wave(2), "Timestamp", clock(0.004, 1600000000),
     sep=", "), **SERIES, time="Timestamp", channels=("EXG Channel 0", "EXG Channel 1"),
     ignored=("Sample Index",))
case("M5: goods, groups of goods, days d_1 ...",
     "id,item_id,dept_id,d_1,d_2,d_3,d_4\nA_1,A,x,0,1,2,3\nB_1,B,x,0,1,2,4\nC_1,C,y,1,1,1,1\n",
     **TABLE, id="id", lengths=[4, 4, 4], ignored=("item_id", "dept_id"))
case("credit cards: times that come again and numbered features",
     T("Time", listed(0, 0, 1, 2, 2, 4, 7, 7, 9, 10, 10, 12), *steps("V", 6, 1), "Amount", wave(3),
     "Class", turns(0, 0, 0, 1)), refuse="--layout")
case("numbered flowers are no recording",
     T("No", count(1), "height", wave(1), "width", wave(2), *TURNS), refuse="--layout")
case("wide, a name for every row",
     T("name", listed(*(f"s{i}" for i in range(12))), "kind", turns("a", "b"), *steps("v", 5)),
     layout="wide", id="name", target="kind", per="sequence", lengths=[5] * 12)
case("sepsis: a label of hours, one patient's changes",
     T("Hour", COUNT4, "HR", wave(1), "Age", blocks(40, 50, 60), "Patient_ID", blocks(1, 2, 3),
     "SepsisLabel", listed(0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0)), refuse="--labels")
case("a temperature T is no time", T("date", DAYS, "T [K]", wave(1), "p", wave(2)),
     **SERIES, time="date", channels=("T [K]", "p"))
case("points for missing values, as FRED writes them",
     T("DATE", months("%Y-%m-%d"), "UNRATE", lambda n: ["." if i == 3 else i for i in range(n)]),
     **SERIES, time="DATE", channels=("UNRATE",))
case("the World Bank's covid table: no single name",
     "P,C,Lat,Long,1/22/20,1/23/20,1/24/20\n,Afgh,1,2,0,0,1\n,Alb,3,4,0,1,2\nNSW,Aus,3,4,0,1,5\n"
     "Vic,Aus,5,6,1,1,2\n",
     **TABLE, id="P C", lengths=[3] * 4, ignored=("P", "C", "Lat", "Long"))

case("three columns together name the series, beside a note",
     "P,C,R,note,1/22/20,1/23/20,1/24/20\na,x,u,k,0,0,1\na,x,v,l,0,1,2\na,y,u,m,0,1,5\n"
     "b,x,u,n,1,1,2\n", **TABLE, given={"ignore": ("note",)}, id="P C R", lengths=[3] * 4,
     ignored=("P", "C", "R", "note"))

# Folders, roles and layouts that a third look added.
MONTHS = (
    "year,January,February,March,April,May,June,July,August,September,October,November,December\n"
)
YEARS = "Year,Jan,Feb,Mar,Apr,May,Jun,Jul,Aug,Sep,Oct,Nov,Dec\n"
case("months in columns, the last year not over", YEARS + "1999," + ",".join(map(str, range(12)))
     + "\n2000,12,13,14,15,,,,,,,,\n", mode="forecast", layout="long", time="Year Jan-Dec",
     channels=("value",), lengths=[16], x=range(16), begins="1999-01-01")
case("months in columns, one of them without a value",
     YEARS + "1999," + ",".join(map(str, range(12))) + "\n2000,12,13,,15,,,,,,,,\n",
     mode="forecast", layout="long", time="Year Jan-Dec", channels=("value",), lengths=[16],
     begins="1999-01-01")
case("months in columns of full names, years from the newest",
     MONTHS + "2001,"
     + ",".join(map(str, range(12, 24))) + "\n2000," + ",".join(map(str, range(12))) + "\n",
     mode="forecast", layout="long", time="year January-December", channels=("value",),
     lengths=[24], x=range(24), begins="2000-01-01")
case("months in columns with a label",
     YEARS.replace("\n", ",label\n") + "1999," + "1," * 12 + "a\n", refuse="--layout")
case("heart rates called hr, as hours are", T("timestamp", HOURS, "hr", wave(300), "spo2", wave(2)),
     **SERIES, time="timestamp", channels=("hr", "spo2"))
case("dates that repeat, where the order of the file counts",
     T("timestamp", blocks("2024-01-01", "2024-01-02"), "hr", wave(300)),
     **SERIES, given={"time": "none"}, channels=("hr",), ignored=("timestamp",))
UNEVEN = listed(*(f"2024-01-20 00:{m:02d}:0{k}" for k in range(3) for m in (0, 3 + k, 7, 20 + k)))
case("series of uneven dates that start again where a text changes", T("stamp", UNEVEN, "pump",
     blocks("p", "q", "r"), "flow", wave(1)), **PANEL, id="pump", time="stamp", channels=("flow",))
case("a text that changes while dates go on may name series or be an input",
     T("stamp", stamps("%Y-%m-%d", days=1), "pump", blocks("p", "q", "r"), "flow", wave(1)),
     mode="forecast", refuse="if it names the series, say --id-column 'pump'")
case("a text that comes and goes is probably an input",
     T("stamp", stamps("%Y-%m-%d", days=1), "sky", turns("blue", "grey"), "flow", wave(1)),
     mode="forecast", refuse="; make every value a channel with --categorical 'sky'")
case("a weekday known in advance of a forecast", T("date", stamps("%Y-%m-%d", days=1),
     "load", wave(300), "weekday", turns(0, 1, 2, 3, 4, 5, 6)),
     **SERIES, given={"known": ("weekday",)}, time="date", channels=("load", "weekday"))
case("an offer in words known in advance of a forecast",
     T("date", stamps("%Y-%m-%d", days=1), "load", wave(300), "offer", turns("a", "b", "")),
     **SERIES, given={"known": ("offer",)}, time="date", channels=("load", "offer=a", "offer=b"))
# fmt: on


@pytest.mark.parametrize(("text", "how", "right", "noted"), CASES.values(), ids=CASES)
def test_every_table_is_read_right_or_refused(read, check, text, how, right, noted):
    if "refuse" in right:
        with pytest.raises(ValueError) as error:
            read(text, **how)
        assert right["refuse"] in str(error.value) and "; got " in str(error.value)
        return
    part = check(text, PLAIN | right, **how)
    if noted:
        assert [note.partition(": ")[2] for note in odd_channels(part)] == list(noted)
