#!/bin/sh
# Writes the files of a healthy simulated board, then becomes its agent.
set -eu
boardlift-simulated-board "$BOARDLIFT_BOARD_ROOT" --serial "0xSIMULATED-${BOARDLIFT_BOARD_ID:-0}" >/dev/null
exec python -m boardlift_board_agent
