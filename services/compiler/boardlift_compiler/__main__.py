"""Start the compiler service: `boardlift-compiler-server`. All settings come from `BOARDLIFT_*` variables."""

from __future__ import annotations

import asyncio
import sys

from boardlift.errors import BoardliftError
from boardlift_servicekit import logs
from boardlift_servicekit.channels import ChannelSettings
from boardlift_servicekit.keeper import KeepSettings
from boardlift_servicekit.server import ServerSettings
from boardlift_servicekit.settings import from_environment

from boardlift_compiler.server import serve
from boardlift_compiler.settings import AllSettings, Settings


def main() -> None:
    """Run until SIGTERM or SIGINT; exits with 2 when a setting is wrong, with 3 when the machinery fails."""
    try:
        settings = AllSettings(
            from_environment(Settings),
            ServerSettings.read(7402),
            from_environment(ChannelSettings),
            from_environment(KeepSettings),
        )
        logs.configure("compiler", settings.own.log_level)
        asyncio.run(serve(settings))
    except BoardliftError as error:
        print(f"boardlift-compiler-server: {error}", file=sys.stderr)
        sys.exit(3 if error.retryable else 2)


if __name__ == "__main__":
    main()
