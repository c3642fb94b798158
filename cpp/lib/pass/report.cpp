// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <algorithm>
#include <cstdio>

namespace hlotag::pass {

namespace {

bool selects(const std::vector<std::string> &names, const PipelineElement &element) {
  return std::any_of(names.begin(), names.end(), [&](const std::string &name) {
    return name == "all" || name == element.name();
  });
}

void writeToStderr(MlirStringRef chunk, void *) { fwrite(chunk.data, 1, chunk.length, stderr); }

std::string title(const PipelineElement &element) {
  if (!element.pass)
    return element.foreign;
  const PassInfo &info = element.pass->info();
  return std::string(info.name) + " (" + std::string(info.argument) + ")";
}

} // namespace

void IRPrinter::before(const PipelineElement &element) const {
  if (selects(options_.printBefore, element))
    print("Before", element, "");
}

void IRPrinter::after(const PipelineElement &element, bool changed) const {
  if (selects(options_.printAfter, element) || (options_.printAfterChange && changed))
    print("After", element, "");
}

void IRPrinter::afterFailure(const PipelineElement &element) const {
  if (options_.printAfterFailure || selects(options_.printAfter, element))
    print("After", element, " Failed");
}

void IRPrinter::print(const char *when, const PipelineElement &element, const char *outcome) const {
  const capi::Table &fn = capi::fn();
  std::string header = std::string("// -----// IR Dump ") + when + " " + title(element) + outcome;
  if (options_.printModuleScope) {
    header += " ('builtin.module' operation";
    if (auto name = module_.attrOf<ir::StringAttr>("sym_name"))
      header += ": @" + std::string(name.value());
    header += ')';
  }
  fprintf(stderr, "%s //----- //\n", header.c_str());
  MlirOpPrintingFlags flags = fn.mlirOpPrintingFlagsCreate();
  if (options_.printDebugInfo)
    fn.mlirOpPrintingFlagsEnableDebugInfo(flags, /*enable=*/true, /*prettyForm=*/false);
  if (options_.printLocalScope)
    fn.mlirOpPrintingFlagsUseLocalScope(flags);
  if (options_.printGeneric)
    fn.mlirOpPrintingFlagsPrintGenericOpForm(flags);
  fn.mlirOperationPrintWithFlags(module_.raw(), flags, writeToStderr, nullptr);
  fn.mlirOpPrintingFlagsDestroy(flags);
  fputs("\n\n", stderr);
}

void TimingReport::addRest(const std::string &name, Clock::duration total) {
  for (const auto &row : rows_)
    total -= row.second;
  rows_.emplace_back(name, std::max(total, Clock::duration{}));
}

void TimingReport::print() const {
  using Seconds = std::chrono::duration<double>;
  Clock::duration total{};
  for (const auto &row : rows_)
    total += row.second;
  double seconds = Seconds(total).count();
  const char *rule = "===-----------------------------------------------------------------------"
                     "--===\n";
  fputs(rule, stderr);
  fputs("                         ... Execution time report ...\n", stderr);
  fputs(rule, stderr);
  fprintf(stderr, "  Total Execution Time: %.4f seconds\n\n", seconds);
  fputs("  ----Wall Time----  ----Name----\n", stderr);
  auto line = [&](Clock::duration time, const std::string &name) {
    double share = seconds > 0 ? 100 * Seconds(time).count() / seconds : 0;
    fprintf(stderr, "  %8.4f (%5.1f%%)  %s\n", Seconds(time).count(), share, name.c_str());
  };
  for (const auto &row : rows_)
    line(row.second, row.first);
  line(total, "Total");
  fputs("\n", stderr);
}

} // namespace hlotag::pass
