#!/bin/sh
# docs/configuration.md is what the key table makes; an edit of one without the other shows here.
#   test_docs.sh SOURCE_ROOT
set -eu
cd "$1"
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
python3 broker/config/generate_keys.py docs broker/config/keys.tsv "$fresh"
if ! diff -u docs/configuration.md "$fresh"; then
  echo "run: python3 broker/config/generate_keys.py docs broker/config/keys.tsv docs/configuration.md"
  exit 1
fi
