// SPDX-License-Identifier: Apache-2.0
#include "hlotag/pass/pass.h"

namespace hlotag::pass {

PassContext::PassContext(ir::Operation module, ir::DiagnosticScope &diagnostics,
                         ValueCheck whyIllegal)
    : module_(module), diagnostics_(diagnostics), whyIllegal_(std::move(whyIllegal)),
      rewriter_(module.context()), tags_(rewriter_), ids_(module.context()) {}

const ir::OpList &PassContext::operations() {
  if (!operations_ || insertionsAtList_ != rewriter_.numInsertions()) {
    calls_.reset();
    operations_.emplace(module_);
    insertionsAtList_ = rewriter_.numInsertions();
  }
  return *operations_;
}

const analysis::CallGraph &PassContext::calls() {
  const ir::OpList &list = operations();
  return calls_ ? *calls_ : calls_.emplace(list, ids_);
}

void PassContext::emitError(ir::Location location, const std::string &message) {
  ++numErrors_;
  capi::fn().mlirEmitError(location.raw(), message.c_str());
}

void PassContext::emitWarning(ir::Operation op, const std::string &message) {
  diagnostics_.add(ir::makeDiagnostic(ir::Severity::Warning, op.location(), message));
}

void PassContext::emitRemark(ir::Operation op, const std::string &message) {
  diagnostics_.add(ir::makeDiagnostic(ir::Severity::Remark, op.location(), message));
}

OptionBase *Pass::findOption(std::string_view name) const {
  for (OptionBase *option : options_)
    if (option->name() == name)
      return option;
  return nullptr;
}

} // namespace hlotag::pass
