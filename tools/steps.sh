# SPDX-License-Identifier: Apache-2.0
# Sourced by test.sh and test_all.sh: runs named checks, sums them up at the end, and repeats there what failed.
failed=()
skipped=()
ran=()
logs=()

step() { # step NAME COMMAND...: runs the command, keeps its output and time, and records whether it passed
  local name=$1 start=$SECONDS log
  shift
  log=build/logs/${name//[^[:alnum:].]/_}.log
  mkdir -p build/logs
  printf '\n=== %s\n' "$name"
  "$@" 2>&1 | tee "$log"
  if [[ ${PIPESTATUS[0]} != 0 ]]; then
    failed+=("$name")
    logs+=("$log")
    return 1
  fi
  ran+=("$name, $((SECONDS - start)) s")
}

# Prints the crashes of test processes in a log, whose stacks pytest prints far above its summary, and the log's end.
repeat_failure() {
  printf '\n=== %s\n' "$1"
  grep -A 40 'Fatal Python error' "$1" | head -120
  tail -n 40 "$1"
}

missing() { # missing WHAT: a check cannot run on this machine; with CI=true that is a failure
  if [[ ${CI:-} == true ]]; then failed+=("$1"); else skipped+=("$1"); fi
}

summary() { # prints the outcome of each step; fails if one failed
  for log in "${logs[@]:+${logs[@]}}"; do repeat_failure "$log"; done
  printf '\n=== summary\n'
  for name in "${ran[@]:+${ran[@]}}"; do echo "ok       $name"; done
  for name in "${skipped[@]:+${skipped[@]}}"; do echo "skipped  $name"; done
  for name in "${failed[@]:+${failed[@]}}"; do echo "FAILED   $name"; done
  [[ ${#failed[@]} == 0 ]]
}
