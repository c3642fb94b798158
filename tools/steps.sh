# SPDX-License-Identifier: Apache-2.0
# Sourced by test.sh and test_all.sh: runs named checks and sums them up at the end.
failed=()
skipped=()
ran=()

step() { # step NAME COMMAND...: runs the command and records whether it passed
  local name=$1
  shift
  printf '\n=== %s\n' "$name"
  if "$@"; then ran+=("$name"); else failed+=("$name"); return 1; fi
}

missing() { # missing WHAT: a check cannot run on this machine; with CI=true that is a failure
  if [[ ${CI:-} == true ]]; then failed+=("$1"); else skipped+=("$1"); fi
}

summary() { # prints the outcome of each step; fails if one failed
  printf '\n=== summary\n'
  for name in "${ran[@]:+${ran[@]}}"; do echo "ok       $name"; done
  for name in "${skipped[@]:+${skipped[@]}}"; do echo "skipped  $name"; done
  for name in "${failed[@]:+${failed[@]}}"; do echo "FAILED   $name"; done
  [[ ${#failed[@]} == 0 ]]
}
