"""JSON lines on standard error, with job, stage, board and request ids bound by context."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog


def configure(service: str, level: str = "INFO") -> None:
    """Send structlog and the standard library's logging as JSON lines to standard error.

    Args:
        service: Name that every line carries.
        level: DEBUG, INFO, WARNING or ERROR.
    """
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level)),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                lambda _logger, _name, event: {"service": service, **event},
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.getLogger("nats").setLevel("WARNING")
    logging.getLogger("asyncio").setLevel("WARNING")
