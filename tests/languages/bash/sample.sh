#!/usr/bin/env bash
# Counts words.
set -euo pipefail

readonly LIMIT=10
source lib/strings.sh

# Counts one text.
count_words() {
  local text="$1" help
  help='
not_one() {
}
'
  declare -A found=()
  for word in $text $help; do
    if [[ -n "${word#-}" ]]; then
      found[$word]=$((${found[$word]:-0} + 1))
    fi
  done
  echo "${#found[@]}"
}

function most {
  local best=""
  while read -r word number; do
    case "$word" in
      -*) continue ;;
      *) best="$word" ;;
    esac
  done
  echo "$best"
}

count_words "a b a" | most
