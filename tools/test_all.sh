#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All checks, for every supported Python found. With CI=true a missing Python or tool is a failure. The compilers for GPU and TPU
# are left out, and named, where their packages cannot be had: they take 2 GB for each version. QUICK=passed says that `make test`
# has just passed, which ran the quick tests with the newest Python and JAX: then each test runs once with that JAX.
set -u
cd "$(dirname "$0")/.."
source tools/steps.sh

chromium=false
if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then
  chromium=true
else
  missing "pages in Chromium: not found; tools/get_packages.sh installs it"
fi

newest=
for version in 3.11 3.12 3.13; do
  if ! bash tools/find_python.sh "$version" >/dev/null; then
    missing "Python $version: not found"
    continue
  fi
  step "Python $version: install" make --no-print-directory ".venv/$version/.installed" || continue
  newest=$version
  case $version in
    # Pages show what the newest jax does, and what compares programs runs for minutes and is the same for each.
    3.11) selection=(-k "not (test_code_of_page or test_known_answers_of_a_command or test_comparison_examples)") ;;
    3.12) if [[ ${QUICK:-} == passed ]]; then selection=(-m slow); else selection=(); fi ;;
    3.13) selection=(-m "not slow") ;; # It has the jax of 3.12, and slow tests are about jax.
  esac
  [[ $version == 3.13 && ${QUICK:-} == passed ]] ||
    step "Python $version: pytest" ".venv/$version/bin/python" -m pytest -q -n auto --maxprocesses=8 --durations=10 "${selection[@]}"
  [[ $version == 3.13 && ${QUICK:-} == passed ]] || step "Python $version: lit" ".venv/$version/bin/lit" -q lit_tests
done

if [[ -n $newest ]]; then
  export PATH="$PWD/.venv/$newest/bin:$PATH"
  # pip may choose any version between the two that are tested whole.
  between=0.11.2
  if [[ $newest == 3.11 ]]; then
    missing "jax $between: not for Python 3.11"
  else
    step "jax $between, a short form" env PYTHON="$(bash tools/find_python.sh "$newest")" bash tools/test_jax.sh "$between"
  fi
  step "C++ unit tests" bash tools/unittests.sh dev
  step "bugs in changed files of cpp/lib, a sample" ".venv/$newest/bin/python" tools/mutate.py --changed --minutes 3
  step "sanitizers" bash tools/sanitize.sh short
  step "docs" make --no-print-directory docs
  if $chromium; then
    step "docs in Chromium" ".venv/$newest/bin/python" tools/check_site.py
  fi
  if [[ -x /usr/lib/llvm-22/bin/mlir-opt && -f /usr/lib/llvm-22/include/mlir-c/IR.h && -d /usr/lib/llvm-22/include/llvm ]]; then
    step "mlir-opt: the passes' lit tests" bash tools/mlir_opt.sh
  else
    missing "mlir-opt: mlir-22-tools or libmlir-22-dev not found; tools/get_packages.sh installs them"
  fi
  step "lint" make --no-print-directory lint
  step "XLA's compilers for GPU and TPU" env CI=false bash tools/test_compilers.sh
else
  failed+=("nothing could be installed")
fi
summary
