// SPDX-License-Identifier: Apache-2.0
//
// How do hlotag's passes run in `mlir-opt --load-pass-plugin`? Their table of C functions is filled
// by the linker.
#include "hlotag/capi/table.h"
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

/// An MLIR pass that runs one of hlotag's. MLIR reads the options, as texts.
class Adapter final : public mlir::Pass {
public:
  Adapter(const hlotag::pass::PassInfo &info, mlir::TypeID id)
      : Pass(id, mlir::ModuleOp::getOperationName()), info_(info) {
    addOptions();
  }
  Adapter(const Adapter &other) : Pass(other), info_(other.info_) { addOptions(); }

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
  void runOnOperation() override {
    MlirOperation module{getOperation()};
    hlotag::pass::RunOptions options;
    options.verify = false; // mlir-opt verifies
    hlotag::pass::Pipeline pipeline;
    pipeline.push_back(hlotag::passes::makePass(info_.argument));
    if (!setOptions(*pipeline[0]))
      return signalPassFailure();
    hlotag::pass::RunResult result = hlotag::pass::run(module, pipeline, options);
    for (const hlotag::ir::Diagnostic &diagnostic : result.diagnostics)
      emit(&getContext(), diagnostic);
    if (!result.ok)
      signalPassFailure();
  }

private:
  using Text = Option<std::string>;
  using List = ListOption<std::string>;

  void addOptions() {
    std::unique_ptr<const hlotag::pass::Pass> pass = hlotag::passes::makePass(info_.argument);
    for (hlotag::pass::OptionBase *option : pass->options()) {
      if (option->type() == "list of strings") {
        lists_.push_back(std::make_unique<List>(*this, name(*option)));
        continue;
      }
      auto *text = std::get_if<std::string>(&option->initial());
      std::string initial = text ? *text : std::to_string(std::get<int64_t>(option->initial()));
      texts_.push_back(std::make_unique<Text>(*this, name(*option), llvm::cl::init(initial)));
    }
  }

  /// Sets those of `pass` that were given. Reports a value of a wrong type.
  bool setOptions(const hlotag::pass::Pass &pass) {
    bool ok = true;
    auto set = [&](llvm::StringRef name, const std::vector<std::string> &texts) {
      bool fits = pass.findOption({name.data(), name.size()})->setTexts(texts);
      if (!fits)
        mlir::emitError(getOperation()->getLoc()) << "a wrong value for the option " << name;
      ok &= fits;
    };
    for (const auto &text : texts_)
      set(text->getArgStr(), {text->getValue()});
    for (const auto &list : lists_)
      if (list->hasValue())
        set(list->getArgStr(), {list->begin(), list->end()});
    return ok;
  }

  static llvm::StringRef name(const hlotag::pass::OptionBase &option) {
    return {option.name().data(), option.name().size()};
  }

  hlotag::pass::PassInfo info_;
  std::vector<std::unique_ptr<Text>> texts_;
  std::vector<std::unique_ptr<List>> lists_;
};

void registerPasses() {
  static mlir::TypeIDAllocator ids;
  // None is missing: the library does not load unless all are linked.
  hlotag::capi::install(linkedFunction);
  for (const auto &pass : hlotag::passes::makeAllPasses()) {
    hlotag::pass::PassInfo info = pass->info();
    mlir::TypeID id = ids.allocate();
    mlir::registerPass([info, id] { return std::make_unique<Adapter>(info, id); });
  }
}

} // namespace

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "hlotag", HLOTAG_VERSION, registerPasses};
}
