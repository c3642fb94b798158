// SPDX-License-Identifier: Apache-2.0
//
// How do hlotag's passes run in `mlir-opt --load-pass-plugin`? Their table of C functions is filled
// by the linker.
#include "hlotag/capi/table.h"
#include "hlotag/pass/pipeline.h"
#include "hlotag/pass/registry.h"
#include "hlotag/pass/run.h"
#include "hlotag/passes/passes.h"

#include <mlir/IR/BuiltinOps.h>
#include <mlir/IR/Diagnostics.h>
#include <mlir/Pass/Pass.h>
#include <mlir/Tools/Plugins/PassPlugin.h>

extern "C" {
#define HLOTAG_REQUIRED(ret, name, args) ret name args;
#include "hlotag/capi/functions.def"
}

namespace {

void *linkedFunction(std::string_view name) {
#define HLOTAG_REQUIRED(ret, function, args)                                                       \
  if (name == #function)                                                                           \
    return reinterpret_cast<void *>(&::function);
#include "hlotag/capi/functions.def"
  return nullptr;
}

mlir::Location locationOf(mlir::MLIRContext *context, const hlotag::ir::Diagnostic &diagnostic) {
  if (diagnostic.file.empty())
    return mlir::UnknownLoc::get(context);
  return mlir::FileLineColLoc::get(context, diagnostic.file, unsigned(diagnostic.line),
                                   unsigned(diagnostic.column));
}

void emit(mlir::MLIRContext *context, const hlotag::ir::Diagnostic &diagnostic) {
  using hlotag::ir::Severity;
  mlir::Location location = locationOf(context, diagnostic);
  mlir::InFlightDiagnostic emitted =
      diagnostic.severity == Severity::Error     ? mlir::emitError(location)
      : diagnostic.severity == Severity::Warning ? mlir::emitWarning(location)
                                                 : mlir::emitRemark(location);
  emitted << diagnostic.message;
  for (const hlotag::ir::Diagnostic &note : diagnostic.notes)
    emitted.attachNote(locationOf(context, note)) << note.message;
}

/// An MLIR pass that runs one of hlotag's. Keeps the options as text.
class Adapter final : public mlir::Pass {
public:
  Adapter(const hlotag::pass::PassInfo &info, mlir::TypeID id)
      : Pass(id, mlir::ModuleOp::getOperationName()), info_(info), text_(info.argument) {}

  mlir::StringRef getName() const override { return {info_.name.data(), info_.name.size()}; }
  mlir::StringRef getArgument() const override {
    return {info_.argument.data(), info_.argument.size()};
  }
  mlir::StringRef getDescription() const override {
    return {info_.summary.data(), info_.summary.size()};
  }
  bool canScheduleOn(mlir::RegisteredOperationName name) const override {
    return name.getStringRef() == mlir::ModuleOp::getOperationName();
  }
  std::unique_ptr<mlir::Pass> clonePass() const override {
    return std::make_unique<Adapter>(*this);
  }
  Adapter(const Adapter &) = default;

  mlir::LogicalResult initializeOptions(
      mlir::StringRef options,
      mlir::function_ref<mlir::LogicalResult(const llvm::Twine &)> errorHandler) override {
    text_ = std::string(info_.argument) + "{" + options.str() + "}";
    try {
      hlotag::pass::Pipeline::parse(text_);
      return mlir::success();
    } catch (const hlotag::pass::PipelineError &error) {
      return errorHandler(error.what());
    }
  }

  void runOnOperation() override {
    MlirOperation module{getOperation()};
    hlotag::pass::RunOptions options;
    options.verify = false; // mlir-opt verifies
    hlotag::pass::RunResult result =
        hlotag::pass::run(module, hlotag::pass::Pipeline::parse(text_), options);
    for (const hlotag::ir::Diagnostic &diagnostic : result.diagnostics)
      emit(&getContext(), diagnostic);
    if (!result.ok)
      signalPassFailure();
  }

private:
  const hlotag::pass::PassInfo &info_;
  std::string text_;
};

void registerPasses() {
  static mlir::TypeIDAllocator ids;
  hlotag::passes::registerAllPasses();
  // None is missing: the library does not load unless all are linked.
  hlotag::capi::install(linkedFunction);
  for (const auto &pass : hlotag::pass::allPasses()) {
    const hlotag::pass::PassInfo &info = pass->info();
    mlir::TypeID id = ids.allocate();
    mlir::registerPass([&info, id] { return std::make_unique<Adapter>(info, id); });
  }
}

} // namespace

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "hlotag", HLOTAG_VERSION, registerPasses};
}
