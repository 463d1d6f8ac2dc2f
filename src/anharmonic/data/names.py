"""What the names of columns say, in several languages, with or without units."""

from __future__ import annotations

import re

_UNITS = frozenset(
    "s sec secs second seconds ms msec msecs millis milliseconds us usec microseconds ns min mins "
    "h hr hrs hours utc gmt unix с мс".split()
)
_BRACKETS = re.compile(r"[\(\[\{<][^\(\[\{<]*[\)\]\}>]\s*$")
_HUMPS = re.compile(r"(?<=[a-zà-ÿ])(?=[A-ZÀ-Þ])")
_GAPS = re.compile(r"[\s_.\-#/:'\"]+")

TIMES = frozenset(
    "time,timestamp,time stamp,datetime,date time,date,t,ds,timestep,time step".split(",")
)
"""Names of times that are taken at their word."""
_TIME_WORDS = frozenset(
    "time timestamp datetime date zeit zeitpunkt zeitstempel datum temps horodatage tiempo fecha "
    "czas aika tid dato время дата 时间 時間 日期 日付 时间戳 시간 날짜 zaman tarih čas elapsed "
    "millis".split()
)
CALENDAR = {
    "year": (
        "year",
        "yr",
        "yyyy",
        "jahr",
        "année",
        "annee",
        "año",
        "ano",
        "anno",
        "rok",
        "год",
        "年",
    ),
    "quarter": ("quarter", "qtr", "quartal", "trimestre", "kvartal", "квартал"),
    "month": ("month", "mon", "mm", "monat", "mois", "mes", "mese", "месяц", "月"),
    "day": ("day", "dy", "tag", "jour", "dia", "día", "giorno", "dom", "день", "日"),
    "hour": ("hour", "hr", "stunde", "heure", "hora", "ora", "час"),
    "minute": ("minute", "minuto"),
    "second": ("second", "sekunde", "seconde", "segundo"),
}
"""Parts of a date, the longest first."""
_CYCLES = frozenset(
    "weekday dayofweek dow wday dayofyear doy yday week weekofyear woche semaine isweekend weekend "
    "holiday isholiday dayofmonth hourofday".split()
)
_COUNTERS = frozenset(
    "sec secs second seconds ms msec msecs us ns minutes hours days years months weeks quarters ts "
    "tempo data sample samples "
    "frame frames step steps tick ticks index idx i n no nr num number count counter row rows obs "
    "observation observations period periods week woche semaine cycle cycles percent epoch "
    "unixtime timeindex timestep seq lfd".split()
) | {word for words in CALENDAR.values() for word in words}
ROWS = frozenset("no nr num number row rows index idx n i obs observation lfd".split())
"""Names of counters that may number independent rows."""
_COUNTED = frozenset("number no nr num index idx id count nbr".split())
INDEX = re.compile(r"|index|Unnamed: 0|__index_level_\d+__", re.IGNORECASE)
"""Names that packages give the numbers of rows."""

TARGETS = (
    frozenset(("target", "label", "labels", "class", "outcome")),
    frozenset(("y",)),
    frozenset(
        (
            "klasse,classe,clase,etikett,etiqueta,etichetta,étiquette,etiquette,метка,класс,标签,"
            "类别,ラベル,레이블,annotation,annotations,anomaly,is anomaly,isanomaly,outlier,"
            "is outlier,ground truth,truth,class id,label id,target id,class label,changepoint,"
            "is changepoint"
        ).split(",")
    ),
    frozenset(
        (
            "activity,activity id,activity label,activityid,gesture,state,species,diagnosis,fault,"
            "event,condition,behavior,behaviour,aktivität"
        ).split(",")
    ),
)
"""Names of targets, better ones first; the last are names of other things, too."""
IDS = (
    frozenset(("id", "series", "series id", "sequence", "sequence id", "case", "case id")),
    frozenset(("unique id", "item id", "trial", "trial id", "sample id")),
)
GROUPS = (
    frozenset(("group", "subject", "patient", "participant", "person", "recording")),
    frozenset(
        ("group id", "subject id", "patient id", "participant id", "person id", "recording id")
    ),
    frozenset(
        (
            "proband,versuchsperson,sujet,paciente,soggetto,испытуемый,user,user id,subj,volunteer,"
            "driver,athlete,animal"
        ).split(",")
    ),
)
_SERIES = frozenset(
    "run session rep repetition experiment episode batch lot file filename path engine unit "
    "machine device vehicle station store shop firm company country region city town ticker symbol "
    "item sku product kennung identifiant identificador record meter site recording window segment "
    "household building bus line versuch messung essai prueba".split()
)
"""Names of what a series is of, if it comes again."""
_CHANNELS = frozenset(
    "ch chan channel channels kanal canal sensor sens lead electrode node probe meter item store "
    "unit station machine mt adc ain ai imu eeg emg ecg ekg acc accel gyro gyr mag var variable "
    "sensor_measurement op_setting setting".split()
)
_SIGNALS = frozenset("eeg emg ecg ekg acc accel gyro gyr mag".split())
_FEATURES = frozenset("feature feat attr attribute pc dim component factor col column f".split())
_STEPS = frozenset(
    (
        ",v,val,value,t,time,step,x,h,hour,lag,point,pt,year,yr,week,day,d,month,pixel,schritt,"
        "sample,tp,timestep"
    ).split(",")
)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def plain(name: str) -> str:
    """A name in lower case, its words apart, without units.

    Example:
        >>> plain("Time [s]"), plain("time_ms"), plain("sampleIndex"), plain("Время, с")
        ('time', 'time', 'sample index', 'время')
    """
    bare = _BRACKETS.sub("", name.strip()).partition(",")[0]
    words = [word for word in _GAPS.split(_HUMPS.sub(" ", bare).lower()) if word]
    while len(words) > 1 and words[-1] in _UNITS:
        words.pop()
    return " ".join(words)


def is_time(name: str) -> bool:
    """Whether a name says that a column holds times.

    Example:
        >>> is_time("Time (ms)"), is_time("sample")
        (True, False)
    """
    unit = _BRACKETS.search(name.strip())
    if unit is not None and len(plain(name)) < 3 and unit[0][1:-1].strip().lower() not in _UNITS:
        return False  # T [degC] is a temperature
    return plain(name) in TIMES


def may_be_time(name: str) -> bool:
    """Whether a column of this name holds times if its numbers rise.

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


def is_counter(name: str) -> bool:
    """Whether a column of this name only numbers samples.

    Example:
        >>> is_counter("Sample Index"), is_counter("steps")
        (True, False)
    """
    return plain(name).split(" ")[0] in ("sample", "frame", "index", "idx", "row", "tick")


def calendar_part(name: str) -> str | None:
    """Which part of a date a name means, None for none; "cycle" for weekdays and the like."""
    word = plain(name).replace(" ", "")
    for part, names in CALENDAR.items():
        if word in names:
            return part
    return "cycle" if word in _CYCLES else None


def may_be_series(name: str) -> bool:
    """Whether a column of this name says which series a row is of, if its cells come again.

    Example:
        >>> may_be_series("Store"), may_be_series("engine_id"), may_be_series("speed")
        (True, True, False)
    """
    words = plain(name).split()
    return bool(words) and (words[0] in _SERIES or "".join(words) in _SERIES)


def target_rank(name: str) -> int | None:
    """The place of a name in `TARGETS`."""
    word = plain(name)
    rank = next((rank for rank, words in enumerate(TARGETS) if word in words), None)
    if rank is None and word.split()[-1:] in (["label"], ["labels"], ["class"], ["target"]):
        return 2
    return 3 if rank is None and word.startswith("is ") else rank


def numbered_kind(prefix: str, count: int) -> str:
    """What columns of one name with numbers are: "step", "channel", "feature" or "" if unknown.

    Args:
        prefix: The name before the numbers.
        count: How many there are.

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
