import logging
import warnings

from anharmonic.train.lightning_messages import hide_lightning_messages


def test_only_listed_lines_are_dropped(caplog):
    logger = logging.getLogger("lightning.pytorch.utilities.rank_zero")
    caplog.set_level(logging.INFO, logger=logger.name)
    logger.addHandler(caplog.handler)
    try:
        with hide_lightning_messages():
            logger.info("GPU available: False, used: False")
            logger.info("Something that matters")
        logger.info("TPU available: False")
    finally:
        logger.removeHandler(caplog.handler)
    texts = {record.getMessage() for record in caplog.records}
    assert texts == {"Something that matters", "TPU available: False"}


def test_only_listed_warnings_are_dropped():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with hide_lightning_messages():
            warnings.warn("GPU available but not used. You can", stacklevel=1)
            warnings.warn("Something that matters", stacklevel=1)
    assert [str(w.message) for w in seen] == ["Something that matters"]
