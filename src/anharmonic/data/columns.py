"""Roles of a table's columns, set by the user or inferred from their names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from anharmonic._checks import (
    boolean,
    choice,
    listed,
    message,
    natural,
    number,
    of_hints,
    positive_int,
    require,
)


def _words(text: str) -> frozenset[str]:
    """Return the names in a text, between commas if there are any."""
    return frozenset(text.split("," if "," in text else None))


_UNITS = _words(
    "s sec secs second seconds ms msec msecs millis milliseconds us usec microseconds ns min mins "
    "h hr hrs hours utc gmt unix с мс"
)
_BRACKETS = re.compile(r"[\(\[\{<][^\(\[\{<]*[\)\]\}>]\s*$")
_HUMPS = re.compile(r"(?<=[a-zà-ÿ])(?=[A-ZÀ-Þ])")
_GAPS = re.compile(r"[\s_.\-#/:'\"]+")

TIMES = _words("time,timestamp,time stamp,datetime,date time,date,t,ds,timestep,time step")
"""Names that always mean times."""
_TIME_WORDS = _words(
    "time timestamp datetime date zeit zeitpunkt zeitstempel datum temps horodatage tiempo fecha "
    "czas aika tid dato время дата 时间 時間 日期 日付 时间戳 시간 날짜 zaman tarih čas elapsed "
    "millis uhrzeit messzeit tijd tijdstip tidspunkt godzina kellonaika saat"
)
CALENDAR = {
    "year": _words("year yr yyyy jahr année annee año ano anno rok год 年"),
    "quarter": _words("quarter qtr quartal trimestre kvartal квартал"),
    "month": _words("month mon mm monat mois mes mese месяц 月"),
    "day": _words("day dy tag jour dia día giorno dom день 日"),
    "hour": _words("hour hr stunde heure hora ora час"),
    "minute": _words("minute minuto"),
    "second": _words("second sekunde seconde segundo"),
}
"""Parts of a date, from the longest to the shortest."""
_CYCLES = _words(
    "weekday dayofweek dow wday dayofyear doy yday week weekofyear woche semaine isweekend weekend "
    "holiday isholiday dayofmonth hourofday"
)
_COUNTERS = _words(
    "sec secs second seconds ms msec msecs us ns minutes hours days years months weeks quarters ts "
    "tempo data sample samples "
    "frame frames step steps tick ticks index idx i n no nr num number count counter row rows obs "
    "observation observations period periods week woche semaine cycle cycles percent epoch "
    "unixtime timeindex timestep seq lfd"
).union(*CALENDAR.values())
ROWS = _words("no nr num number row rows index idx n i obs observation lfd")
"""Names of counters, which may number independent rows."""
_COUNTED = _words("number no nr num index idx id count nbr")
INDEX = re.compile(r"|index|Unnamed: 0|__index_level_\d+__", re.IGNORECASE)
"""Names that packages give to row numbers."""

TARGETS = (
    _words("target label labels class outcome"),
    _words("y"),
    _words(
        "klasse,classe,clase,etikett,etiqueta,etichetta,étiquette,etiquette,метка,класс,标签,"
        "类别,ラベル,레이블,annotation,annotations,anomaly,is anomaly,isanomaly,outlier,"
        "is outlier,ground truth,truth,class id,label id,target id,class label,changepoint,"
        "is changepoint"
    ),
    _words(
        "activity,activity id,activity label,activityid,gesture,state,species,diagnosis,fault,"
        "event,condition,behavior,behaviour,aktivität,zustand"
    ),
)
"""Names of targets, best first; the last ones may also mean other things."""
IDS = (
    _words("id,series,series id,sequence,sequence id,case,case id"),
    _words("unique id,item id,trial,trial id,sample id"),
)
GROUPS = (
    _words("group subject patient participant person recording"),
    _words("group id,subject id,patient id,participant id,person id,recording id"),
    _words(
        "proband,versuchsperson,sujet,paciente,soggetto,испытуемый,user,user id,subj,volunteer,"
        "driver,athlete,animal"
    ),
)
GROUP_WORDS: frozenset[str] = frozenset().union(*GROUPS)
_SERIES = _words(
    "run session rep repetition experiment episode batch lot file filename path engine unit "
    "machine device vehicle station store shop firm company country region city town ticker symbol "
    "item sku product kennung identifiant identificador record meter site recording window segment "
    "household building bus line versuch messung essai prueba"
)
"""Names that identify a series if their values repeat."""
_CHANNELS = _words(
    "ch chan channel channels kanal canal sensor sens lead electrode node probe meter item store "
    "unit station machine mt adc ain ai imu eeg emg ecg ekg acc accel gyro gyr mag var variable "
    "sensor_measurement op_setting setting"
)
_SIGNALS = _words("eeg emg ecg ekg acc accel gyro gyr mag")
_FEATURES = _words("feature feat attr attribute pc dim component factor col column f")
_STEPS = _words(
    ",v,val,value,t,time,step,x,h,hour,lag,point,pt,year,yr,week,day,d,month,pixel,schritt,"
    "sample,tp,timestep"
)
FULL_MONTHS = tuple(
    "january february march april may june july august september october november december".split()
)
MONTHS = tuple(month[:3] for month in FULL_MONTHS)


def plain(name: str) -> str:
    """Return a name in lower case, with separated words and without units.

    Example:
        >>> plain("Time [s]"), plain("time_ms"), plain("sampleIndex"), plain("Время, с")
        ('time', 'time', 'sample index', 'время')
        >>> plain("<DATE>")
        'date'
    """
    bare = (_BRACKETS.sub("", name.strip()) or name.strip("()[]{}<> ")).partition(",")[0]
    words = [word for word in _GAPS.split(_HUMPS.sub(" ", bare).lower()) if word]
    while len(words) > 1 and words[-1] in _UNITS:
        words.pop()
    return " ".join(words)


def is_time(name: str) -> bool:
    """Whether a name means that a column holds times.

    Example:
        >>> is_time("Time (ms)"), is_time("sample")
        (True, False)
    """
    unit = _BRACKETS.search(name.strip())
    if unit is not None and len(plain(name)) < 3 and unit[0][1:-1].strip().lower() not in _UNITS:
        return False  # T [degC] is a temperature
    return plain(name) in TIMES


def may_be_time(name: str) -> bool:
    """Whether a column of this name holds times if its numbers increase.

    Example:
        >>> may_be_time("Elapsed Time (s)"), may_be_time("sample #"), may_be_time("speed")
        (True, True, False)
    """
    if INDEX.fullmatch(name):
        return True
    words = plain(name).split()
    if len(words) > 1 and words[-1] in _COUNTED:
        words = words[:-1] if words[0] in _COUNTERS else words
    joined = "".join(words)
    return bool(_TIME_WORDS & set(words)) or joined in _COUNTERS or joined in _TIME_WORDS


def are_few(rows: int, among: int) -> bool:
    """Whether so few rows must not decide what a column holds: at most one in twenty.

    Example:
        >>> are_few(1, 20), are_few(2, 20)
        (True, False)
    """
    return 20 * rows <= among


def are_errors(words: int, among: int) -> bool:
    """Whether words among measured numbers are errors such as ERR: less than a quarter of cells.

    They may be more than `are_few`, because classes and names do not have many measured numbers.

    Example:
        >>> are_errors(2, 10), are_errors(5, 10)
        (True, False)
    """
    return 4 * words < among


def is_counter(name: str) -> bool:
    """Whether a column of this name only numbers samples.

    Example:
        >>> is_counter("Sample Index"), is_counter("steps")
        (True, False)
    """
    return plain(name).split(" ")[0] in ("sample", "frame", "index", "idx", "row", "tick")


def calendar_part(name: str) -> str | None:
    """Return the part of a date that a name means, or None; "cycle" for weekdays and the like."""
    word = plain(name).replace(" ", "")
    kinds = {**CALENDAR, "cycle": _CYCLES}
    return next((part for part, names in kinds.items() if word in names), None)


def may_be_series(name: str) -> bool:
    """Whether a column of this name identifies the series of a row if its values repeat.

    Example:
        >>> may_be_series("Store"), may_be_series("engine_id"), may_be_series("speed")
        (True, True, False)
    """
    words = plain(name).split()
    return bool(words) and (words[0] in _SERIES or "".join(words) in _SERIES)


def target_rank(name: str) -> int | None:
    """Return the position of a name in `TARGETS`."""
    word = plain(name)
    rank = next((rank for rank, words in enumerate(TARGETS) if word in words), None)
    if rank is None and word.split()[-1:] in (["label"], ["labels"], ["class"], ["target"]):
        return 2
    return 3 if rank is None and word.startswith("is ") else rank


def numbered_kind(prefix: str, count: int) -> str:
    """Return what numbered columns are: "step", "channel", "feature", or "" if unknown.

    Args:
        prefix: The name before the numbers.
        count: Number of columns.

    Example:
        >>> numbered_kind("v", 5), numbered_kind("ch", 8), numbered_kind("a", 3)
        ('step', 'channel', '')
    """
    word = prefix.strip().lower().strip("_ .-[(")
    first = re.split(r"[ _.\-]", word)[0]
    if word in _SIGNALS and count >= 50:
        return "step"
    if word in _CHANNELS or (first in _CHANNELS and first not in _SIGNALS):
        return "channel"
    if word in _FEATURES or (word == "x" and count < 4):
        return "feature"
    return "step" if word in _STEPS else ""


Layout = Literal["auto", "wide", "long", "nested"]
ROLES = ("target", "id", "time", "group")
Duplicates = Literal["refuse", "first", "mean"]
Labels = Literal["auto", "sequence", "step"]
NO_COLUMN = "none"
_TUPLES = ("values", "ignore", "static", "categorical", "known")
# Names in lower case, best first; names in one row are equally good.
_KNOWN = {"target": TARGETS[:2], "id": IDS, "time": (TIMES,), "group": GROUPS}


@dataclass(frozen=True)
class Columns:
    """The roles of a table's columns, and its layout.

    Attributes:
        target: The target. "none" for no such column.
        id: The sequence of a row.
        time: Time of a row (start time of the sequence if a row is a sequence). "none" for no such
            column; rows then have the order of the file.
        group: The subject or recording.
        layout: "wide" (a row is a sequence, its columns are the steps), "long" (a row is a step),
            "nested" (a row is a sequence, its cells are lists); "auto" to detect it.
        values: The named columns of the channels, or of the steps if a row is a sequence.
        header: Whether a text file begins with column names; None to detect it.
        width: Number of columns; 0 if unknown.
        windows: Whether sequences will be cut into windows. Rows without ids are then steps of one
            recording, unless columns number the steps.
        forecast: Whether to forecast values. The name of a numeric column then does not make it a
            target.
        found: Whether the roles come from a table; a role without a column is then absent.
        ignore: Columns to leave out.
        date_format: Format of dates, as in `datetime.strptime`; None to detect it.
        duplicates: How to treat rows with repeated times: "refuse", "first" or "mean".
        labels: Whether a table of steps has a target per "sequence" or per "step"; "auto" to detect
            it.
        static: Input columns with one value per recording; text is categorical.
        categorical: Categorical input columns; each category becomes a channel.
        known: For forecasts, columns with known future values; text is categorical.
        categories: The training categories of each such column.
        label_pattern: For a folder, a regular expression for the label in a file's relative path:
            its first group, or the whole match.
        group_pattern: The same for the group.
        annotations: For a folder, the suffix of files with labels of steps: `a.labels.csv`
            annotates `a.csv`.
        resample: Sampling rate for the sounds of a folder; None for the rate of the files, which
            must agree.
        rate: Original samples per second of sounds; None if unknown.
        folder: Description of how a folder was read.

    Example:
        >>> Columns(target="label") == Columns.from_dict(Columns(target="label").to_dict())
        True
    """

    target: str | None = None
    id: str | None = None
    time: str | None = None
    group: str | None = None
    layout: Layout = "auto"
    values: tuple[str, ...] = ()
    header: bool | None = None
    width: int = 0
    found: bool = False
    windows: bool = False
    forecast: bool = False
    ignore: tuple[str, ...] = ()
    date_format: str | None = None
    duplicates: Duplicates = "refuse"
    labels: Labels = "auto"
    static: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    categories: tuple[tuple[str, tuple[str, ...]], ...] = ()
    label_pattern: str | None = None
    group_pattern: str | None = None
    annotations: str = ".labels.csv"
    resample: int | None = None
    rate: float | None = None
    folder: str = ""

    def __post_init__(self) -> None:
        choice("layout", self.layout, ("auto", "wide", "long", "nested"))
        choice("duplicates", self.duplicates, ("refuse", "first", "mean"))
        choice("labels", self.labels, ("auto", "sequence", "step"))
        for name in ("windows", "forecast", "found"):
            boolean(name, getattr(self, name))
        if self.header is not None:
            boolean("header", self.header)
        natural("width", self.width)
        for field in _TUPLES:
            for value in getattr(self, field):
                text, advice = isinstance(value, str), "give strings"
                require(text, field, value, "names of columns", advice, TypeError)
        text = self.date_format is None or isinstance(self.date_format, str)
        advice = "for example '%d.%m.%Y'"
        require(text, "date_format", self.date_format, "a string", advice, TypeError)
        for name in ("label_pattern", "group_pattern"):
            if getattr(self, name) is not None:
                _check_pattern(name, getattr(self, name))
        if self.resample is not None:
            positive_int("resample", self.resample)
        if self.rate is not None:
            number("rate", self.rate, low=0, low_open=True)
        text, advice = isinstance(self.annotations, str), "for example '.labels.csv'"
        require(text, "annotations", self.annotations, "a string", advice, TypeError)
        advice = "name what is forecast with --forecast (forecast=[...])"
        free = self.found or not self.forecast or self.target is None
        require(free, "target_column with horizon", self.target, "None", advice)
        roles: dict[str, str] = {}
        for role in ROLES:
            name = getattr(self, role)
            if name is None:
                continue
            if not isinstance(name, str):
                advice = "give the column's name, or None to find it"
                came = f"{name!r} ({type(name).__name__})"
                raise TypeError(message(f"{role}_column must be a string", came, advice))
            once, expected = name not in roles, f"not that of {roles.get(name)}_column"
            both = (roles.get(name), role) == ("id", "group")  # each recording is a group
            require(once or both, f"{role}_column", name, expected, "name another column")
            roles[name] = role
        twice = [name for name in self.inputs if name in roles]
        advice = "an input cannot be the target, the id, the time or the group: name it once"
        expected = "columns without another role"
        require(not twice, "static, categorical and known", twice, expected, advice)

    def describe(self) -> str:
        """Describe the roles of the columns in one line.

        Example:
            >>> Columns(target="label", layout="wide", header=True).describe()
            "layout wide (a row per sequence): target column 'label'"
        """
        rows = {"wide": "a row per sequence", "long": "a row per step", "nested": "lists in cells"}
        named = {role: getattr(self, role) for role in ROLES}
        said = [f"{role} column {name!r}" for role, name in named.items() if name is not None]
        if self.values and self.layout != "wide":
            said.append(f"values {_shortened(self.values)}")
        if self.header is False:
            said.append("no header row, columns are numbered from 1")
        if self.ignore:
            inside = " of the files" * bool(self.folder)  # labels.csv may have the same names
            said.append(f"left out {_shortened(self.ignore)}{inside}")
        if numbers := [name for name in self.static if name not in dict(self.categories)]:
            said.append(f"one value per recording {_shortened(numbers)}")
        if self.known:
            said.append(f"known in advance {_shortened(self.known)}")
        for name, kinds in self.categories:
            said.append(f"a channel for each of the categories {_shortened(kinds)} of {name!r}")
        table = f"layout {self.layout} ({rows.get(self.layout)})"
        how = f"read as {self.folder}" if self.folder else table
        return f"{how}{': ' * bool(said)}{', '.join(said)}"

    @property
    def inputs(self) -> tuple[str, ...]:
        """Input columns besides the measured values, each once."""
        return tuple(dict.fromkeys((*self.static, *self.categorical, *self.known)))

    @property
    def beside(self) -> tuple[str, ...]:
        """Input channels besides the measured values, which are never forecast."""
        kinds = dict(self.categories)
        return tuple(
            channel
            for name in self.inputs
            for channel in ([f"{name}={kind}" for kind in kinds[name]] if name in kinds else [name])
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the roles as JSON values."""
        lists = {name: list(getattr(self, name)) for name in _TUPLES}
        kinds = [[name, list(of)] for name, of in self.categories]
        return asdict(self) | lists | {"categories": kinds}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Columns:
        """Make the roles from JSON values.

        Raises:
            ValueError: If a key or value is unknown, or a name is not a string.
        """
        advice = "use what to_dict() gave"
        require(isinstance(values, dict), "columns", values, "an object of JSON", advice)
        for key in values:
            choice("key of columns", key, [field.name for field in fields(cls)])
        of_hints(cls, values, "columns", advice)
        tuples = {name: tuple(values.get(name, ())) for name in _TUPLES}
        kinds = tuple((name, tuple(of)) for name, of in values.get("categories", ()))
        return cls(**{**values, **tuples, "categories": kinds})


def _check_pattern(name: str, pattern: Any) -> None:
    """Refuse invalid regular expressions."""
    advice = r"for example '^([^/]+)/' for the first folder, or '_(\w+)_' for what is between _"
    text, expected = isinstance(pattern, str), "a regular expression"
    require(text, name, pattern, expected, advice, TypeError)
    try:
        re.compile(pattern)
    except re.error as error:
        came = f"{pattern!r} ({error})"
        raise ValueError(message(f"{name} must be {expected}", came, advice)) from None


def _shortened(names: Sequence[str]) -> str:
    shown = [repr(name) for name in names]
    return listed([*shown[:6], "...", shown[-1]] if len(shown) > 8 else shown)


def is_role(name: str, given: Columns) -> bool:
    """Whether a column of this name has a role.

    Example:
        >>> is_role("Label", Columns()), is_role("x", Columns()), is_role("x", Columns(time="x"))
        (True, False, True)
    """
    said = name in [getattr(given, role) for role in ROLES]
    return said or any(plain(name) in words for known in _KNOWN.values() for words in known)


def by_name(
    names: Sequence[str],
    given: Columns,
    where: str,
    targets: bool,
    searched: Sequence[str] = ROLES,
) -> dict[str, str]:
    """Return the columns with a role: the given ones, otherwise those with a known name.

    `targets` says whether a given target column must exist; only roles in `searched` are inferred.
    """
    roles: dict[str, str] = {}
    for role in ROLES:
        name = getattr(given, role)
        none = role in ("target", "time") and name == NO_COLUMN and name not in names
        if name is None or none:
            continue
        if name in names:
            roles[role] = name
        elif targets or role in ("id", "time"):
            lacking = f"{where} must have the {role} column {name!r}, as in training"
            shown = [*names[:5], *(["..."] if len(names) > 5 else [])]
            if given.found:
                raise ValueError(message(lacking, f"the columns {', '.join(shown)}", "add it"))
            choice(f"{role}_column in {where}", name, names)
    if given.found:
        return roles
    for role in searched:
        if role in roles or getattr(given, role) is not None:
            continue
        free = [name for name in names if name not in roles.values()]
        for known in _KNOWN[role]:
            could = [name for name in free if plain(name) in known]
            if role == "target" and {"x", "y", "z"} <= {name.lower() for name in free}:
                could = [name for name in could if name.lower() != "y"]  # three axes of space
            if could:
                advice = f"say which with --{role}-column {could[0]!r} ({role}_column=...)"
                require(len(could) == 1, f"{role} column in {where}", could, "one column", advice)
                roles[role] = could[0]
                break
    return roles
