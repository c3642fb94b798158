// SPDX-License-Identifier: Apache-2.0
//
// Our passes and guests are called directly. Each foreign element runs in a pass manager of its
// own, so that the failing element is known; the C API has no stable functions for instrumentation.
#include "hlotag/pass/run.h"
#include "report.h"
#include "snapshot.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace hlotag::pass {

namespace {

using Clock = TimingReport::Clock;
constexpr std::string_view kModule = "builtin.module";

class PassManager {
public:
  PassManager(MlirContext context, bool verify)
      : manager_(capi::fn().mlirPassManagerCreate(context)) {
    capi::fn().mlirPassManagerEnableVerifier(manager_, verify);
  }
  ~PassManager() {
    if (manager_.ptr)
      capi::fn().mlirPassManagerDestroy(manager_);
  }
  PassManager(PassManager &&other) noexcept : manager_(other.manager_) {
    other.manager_.ptr = nullptr;
  }
  PassManager &operator=(PassManager &&) = delete;

  /// Returns why MLIR rejects `text`, or nothing.
  std::optional<std::string> addText(const std::string &text) {
    std::string reason;
    MlirLogicalResult result = capi::fn().mlirOpPassManagerAddPipeline(
        capi::fn().mlirPassManagerGetAsOpPassManager(manager_), ir::toRef(text), ir::appendToString,
        &reason);
    reason.erase(reason.find_last_not_of('\n') + 1);
    return result.value ? std::nullopt : std::optional<std::string>(reason);
  }

  bool run(ir::Operation module) {
    return capi::fn().mlirPassManagerRunOnOp(manager_, module.raw()).value != 0;
  }

private:
  MlirPassManager manager_;
};

/// The type of the function that JAX calls, or null.
ir::Attribute entryType(ir::Operation module) {
  for (ir::Operation op : module.regions()[0].firstBlock().operations())
    if (auto name = op.attrOf<ir::StringAttr>("sym_name"); name && name.value() == "main")
      return op.attr("function_type");
  return {};
}

class Executor {
public:
  Executor(ir::Operation module, const Pipeline &pipeline, const RunOptions &options,
           ir::Operation spare)
      : module_(module), spare_(spare), elements_(pipeline), options_(options),
        diagnostics_(module.context()), context_(module, diagnostics_, options.whyIllegal),
        printer_(module, options),
        mixed_(std::any_of(pipeline.begin(), pipeline.end(),
                           [](const PipelineElement &element) { return element.isOpaque(); })) {
    if (mixed_ && !spare)
      throw std::invalid_argument("a pipeline with passes of others needs a spare module");
    for (const PipelineElement &element : elements_)
      managers_.push_back(element.pass ? std::nullopt : std::optional(managerFor(element)));
  }

  RunResult run();

private:
  PassManager managerFor(const PipelineElement &element) const {
    PassManager manager(module_.context(), options_.verify);
    if (auto reason = manager.addText(element.foreign))
      throw PipelineError("MLIR rejects '" + element.foreign + "': " + *reason);
    return manager;
  }

  bool runElement(size_t index);
  bool runOpaque(const PipelineElement &element, std::optional<PassManager> &manager);
  bool runPass(const PipelineElement &element);
  bool runGuarded(Pass &pass);
  /// Whether a sequence of our passes ends with the element. Opaque elements stand alone.
  bool endsSequence(size_t index) const {
    return index + 1 == elements_.size() || elements_[index].isOpaque() ||
           elements_[index + 1].isOpaque();
  }
  /// Verifies what our passes changed since the last call.
  bool verifyChanges();
  void fail(const PipelineElement &element);
  void checkEntry(ir::Attribute before);
  void rollback();

  ir::Operation module_, spare_;
  const Pipeline &elements_;
  const RunOptions &options_;
  ir::DiagnosticScope diagnostics_;
  PassContext context_;
  IRPrinter printer_;
  TimingReport timing_;
  bool mixed_;
  std::optional<Snapshot> snapshot_;
  std::vector<std::optional<PassManager>> managers_; // by element; none for those with a pass
  size_t numVerified_ = 0;                           // changes
  RunResult result_;
};

bool Executor::verifyChanges() {
  size_t before = std::exchange(numVerified_, context_.rewriter().numChanges());
  return !options_.verify || context_.rewriter().verify(module_, before);
}

bool Executor::runPass(const PipelineElement &element) {
  size_t changesBefore = context_.rewriter().numChanges();
  Clock::time_point start = Clock::now();
  context_.tags().recordOrigins(options_.debugOrigins ? element.pass->info().argument : "");
  bool ok = runGuarded(*element.pass);
  if (options_.timing)
    timing_.add(element.name(), Clock::now() - start);
  if (!ok) {
    fail(element);
    return false;
  }
  bool changed = context_.rewriter().numChanges() != changesBefore;
  if (changed)
    result_.changedPasses.push_back(element.name());
  result_.numChanges += context_.rewriter().numChanges() - changesBefore;
  return true;
}

bool Executor::runGuarded(Pass &pass) {
  size_t errorsBefore = context_.numErrors();
  bool ok = false;
  try {
    ok = succeeded(pass.run(context_));
  } catch (const ir::IRError &error) {
    (void)context_.emitError(ir::Location(error.location), error.what());
  } catch (const std::exception &error) {
    (void)context_.emitError(module_, std::string(pass.info().argument) +
                                          " failed unexpectedly: " + error.what());
  }
  bool silent = !ok && context_.numErrors() == errorsBefore;
  if (silent)
    (void)context_.emitError(module_, std::string(pass.info().argument) + " failed");
  return ok && context_.numErrors() == errorsBefore;
}

bool Executor::runOpaque(const PipelineElement &element, std::optional<PassManager> &manager) {
  std::string before = options_.printAfterChange ? printer_.fingerprint() : std::string();
  bool ok =
      manager ? manager->run(module_) : runPass(element) && (!options_.verify || module_.verify());
  if (ok && options_.printAfterChange && printer_.fingerprint() != before)
    result_.changedPasses.push_back(element.name());
  return ok;
}

bool Executor::runElement(size_t index) {
  const PipelineElement &element = elements_[index];
  printer_.before(element);
  size_t changedBefore = result_.changedPasses.size();
  Clock::time_point start = Clock::now();
  bool ok = element.isOpaque() ? runOpaque(element, managers_[index]) : runPass(element);
  if (options_.timing && !element.pass)
    timing_.add(element.name(), Clock::now() - start);
  if (ok && (endsSequence(index) || options_.prints() || options_.timing))
    ok = verifyChanges();
  if (!ok) {
    // No pass failed, so the verifier did.
    if (result_.failingPass.empty())
      fail(element);
    printer_.afterFailure(element);
    return false;
  }
  printer_.after(element, result_.changedPasses.size() != changedBefore);
  // Foreign passes may destroy operations in the journal.
  if (mixed_ && endsSequence(index)) {
    context_.invalidate();
    numVerified_ = 0;
  }
  return true;
}

void Executor::fail(const PipelineElement &element) {
  result_.ok = false;
  result_.failingPass = element.name();
}

void Executor::rollback() {
  context_.rewriter().rollback();
  if (snapshot_)
    snapshot_->restore();
  result_.changedPasses.clear();
  result_.numChanges = 0;
}

void Executor::checkEntry(ir::Attribute before) {
  ir::Attribute after = entryType(module_);
  if (after == before)
    return;
  auto text = [](ir::Attribute type) { return type ? type.str() : std::string("nothing"); };
  (void)context_.emitError(
      module_,
      ir::concat({"the passes changed the type of the program's entry point from ", text(before),
                  " to ", text(after), ", but JAX calls it with the former type"}));
  result_.ok = false;
}

RunResult Executor::run() {
  if (mixed_)
    snapshot_.emplace(module_, spare_);
  ir::Attribute entry = options_.keepEntry ? entryType(module_) : ir::Attribute();
  Clock::time_point start = Clock::now();
  for (size_t index = 0; index < elements_.size() && runElement(index); ++index) {
  }
  if (result_.ok && options_.keepEntry)
    checkEntry(entry);
  if (result_.ok)
    context_.rewriter().commit();
  else
    rollback();
  if (options_.timing) {
    timing_.addRest("(verifier and rest)", Clock::now() - start);
    timing_.print();
  }
  result_.diagnostics = diagnostics_.take();
  return std::move(result_);
}

} // namespace

RunResult run(ir::Operation module, const Pipeline &pipeline, const RunOptions &options,
              ir::Operation spare) {
  if (module.name().str() != kModule)
    throw std::invalid_argument("a pipeline runs on a '" + std::string(kModule) +
                                "' operation, not on '" + std::string(module.name().str()) + "'");
  ir::SourceName source(options.source);
  return Executor(module, pipeline, options, spare).run();
}

} // namespace hlotag::pass
