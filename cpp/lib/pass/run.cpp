// SPDX-License-Identifier: Apache-2.0
//
// A pipeline runs in segments, each in its own pass manager, so that the failing element is known;
// the C API has no stable functions for instrumentation. A segment is a sequence of our passes as
// one external pass, verified once, or one foreign element. Guest passes are called directly.
#include "hlotag/pass/run.h"
#include "hlotag/pass/registry.h"
#include "report.h"
#include "snapshot.h"

#include <map>
#include <mutex>
#include <optional>

namespace hlotag::pass {

namespace {

using Clock = TimingReport::Clock;
constexpr std::string_view kModule = "builtin.module";

/// Returns the TypeID of a pass class for the life of the process. `key` is the address of the
/// class's PassInfo.
MlirTypeID typeIdOf(const void *key) {
  static std::mutex mutex;
  static MlirTypeIDAllocator allocator = capi::fn().mlirTypeIDAllocatorCreate();
  static std::map<const void *, MlirTypeID> ids;
  std::lock_guard<std::mutex> lock(mutex);
  auto [slot, isNew] = ids.try_emplace(key, MlirTypeID{nullptr});
  if (isNew)
    slot->second = capi::fn().mlirTypeIDAllocatorAllocateTypeID(allocator);
  return slot->second;
}

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

  void addOwned(MlirPass pass) { capi::fn().mlirPassManagerAddOwnedPass(manager_, pass); }

  /// Returns why MLIR rejects `text`, or nothing.
  std::optional<std::string> addText(const std::string &text) {
    std::string reason;
    MlirLogicalResult result = capi::fn().mlirOpPassManagerAddPipeline(
        capi::fn().mlirPassManagerGetAsOpPassManager(manager_), ir::toRef(text), ir::appendToString,
        &reason);
    return result.value ? std::nullopt : std::optional<std::string>(reason);
  }

  bool run(ir::Operation module) {
    return capi::fn().mlirPassManagerRunOnOp(manager_, module.raw()).value != 0;
  }

private:
  MlirPassManager manager_;
};

/// Consecutive elements that run in one pass manager.
struct Segment {
  std::vector<const PipelineElement *> elements;
  PassManager manager;

  bool isOpaque() const { return elements.front()->isOpaque(); }
};

/// Suggests a pass of ours for a name that MLIR rejects.
std::string hint(const PipelineElement &element) {
  std::vector<std::string> known;
  for (const auto &pass : allPasses())
    known.emplace_back(pass->info().argument);
  std::vector<std::string> near = nearest(element.name(), known, 1);
  return near.empty() ? "" : "\nhlotag has a pass '" + near.front() + "'";
}

class Executor {
public:
  Executor(ir::Operation module, const Pipeline &pipeline, const RunOptions &options)
      : module_(module), options_(options), diagnostics_(module.context()),
        context_(module, diagnostics_), printer_(module, options), mixed_(pipeline.hasOpaque()) {
    bool fold = !options.prints() && !options.timing;
    for (const PipelineElement &element : pipeline.elements())
      addElement(element, fold);
  }

  RunResult run();

private:
  /// User data of MLIR's external pass: the passes of one segment. MLIR clones a pass to run it on
  /// several operations in parallel; the executor owns the original.
  struct Group {
    Executor *executor;
    std::vector<const PipelineElement *> elements;
    bool isCopy = false;
  };

  void addElement(const PipelineElement &element, bool fold);
  void addExternalPass(Segment &segment);
  static void *cloneGroup(void *userData);
  static void destroyGroup(void *userData);
  static void runGroup(MlirOperation op, MlirExternalPass self, void *userData);

  bool runElements(const std::vector<const PipelineElement *> &elements);
  bool runPass(const PipelineElement &element);
  bool runGuarded(Pass &pass);
  bool runSegment(Segment &segment);
  bool runOpaque(const PipelineElement &element, Segment &segment);
  bool runGuest(const PipelineElement &element);
  void fail(const PipelineElement &element);
  void rollback();

  ir::Operation module_;
  const RunOptions &options_;
  ir::DiagnosticScope diagnostics_;
  PassContext context_;
  IRPrinter printer_;
  TimingReport timing_;
  bool mixed_;
  bool hasGuests_ = false;
  std::optional<Snapshot> snapshot_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<Segment> segments_;
  RunResult result_;
};

void Executor::addElement(const PipelineElement &element, bool fold) {
  bool extend = fold && !element.isOpaque() && !segments_.empty() && !segments_.back().isOpaque();
  if (extend) {
    segments_.back().elements.push_back(&element);
    groups_.back()->elements.push_back(&element);
    return;
  }
  // After our passes the executor verifies, if their changes require it.
  bool managerVerifies = options_.verify && !element.pass;
  segments_.push_back({{&element}, PassManager(module_.context(), managerVerifies)});
  if (!element.isOpaque()) {
    addExternalPass(segments_.back());
  } else if (element.pass) {
    hasGuests_ = true;
  } else if (auto reason = segments_.back().manager.addText(element.foreign)) {
    throw PipelineError("MLIR rejects '" + element.foreign + "': " + *reason + hint(element));
  }
}

void Executor::addExternalPass(Segment &segment) {
  groups_.push_back(std::make_unique<Group>(Group{this, segment.elements}));
  const PassInfo &info = segment.elements.front()->pass->info();
  MlirExternalPassCallbacks callbacks{};
  callbacks.construct = [](void *) {};
  callbacks.destruct = destroyGroup;
  callbacks.initialize = nullptr;
  callbacks.clone = cloneGroup;
  callbacks.run = runGroup;
  segment.manager.addOwned(capi::fn().mlirCreateExternalPass(
      typeIdOf(&info), ir::toRef(info.name), ir::toRef(info.argument), ir::toRef(info.summary),
      ir::toRef(kModule), 0, nullptr, callbacks, groups_.back().get()));
}

void *Executor::cloneGroup(void *userData) {
  auto *copy = new Group(*static_cast<Group *>(userData));
  copy->isCopy = true;
  return copy;
}

void Executor::destroyGroup(void *userData) {
  auto *group = static_cast<Group *>(userData);
  if (group->isCopy)
    delete group;
}

void Executor::runGroup(MlirOperation op, MlirExternalPass self, void *userData) {
  auto *group = static_cast<Group *>(userData);
  bool ok = false;
  // An exception must not cross MLIR's frames.
  try {
    ok = ir::Operation(op) == group->executor->module_ &&
         group->executor->runElements(group->elements);
  } catch (...) {
    ok = false;
  }
  if (!ok)
    capi::fn().mlirExternalPassSignalFailure(self);
}

bool Executor::runElements(const std::vector<const PipelineElement *> &elements) {
  size_t changesBefore = context_.rewriter().numChanges();
  for (const PipelineElement *element : elements)
    if (!runPass(*element))
      return false;
  return !options_.verify || context_.rewriter().verify(module_, changesBefore);
}

bool Executor::runPass(const PipelineElement &element) {
  size_t changesBefore = context_.rewriter().numChanges();
  Clock::time_point start = Clock::now();
  // A copy, because several threads may run one pipeline.
  std::unique_ptr<Pass> pass = element.pass->clone();
  context_.tags().recordOrigins(options_.debugOrigins ? pass->info().argument : "");
  bool ok = runGuarded(*pass);
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

bool Executor::runGuest(const PipelineElement &element) {
  return runPass(element) && (!options_.verify || capi::fn().mlirOperationVerify(module_.raw()));
}

bool Executor::runOpaque(const PipelineElement &element, Segment &segment) {
  std::string before = options_.printAfterChange ? printer_.fingerprint() : std::string();
  bool ok = element.pass ? runGuest(element) : segment.manager.run(module_);
  if (ok && options_.printAfterChange && printer_.fingerprint() != before)
    result_.changedPasses.push_back(element.name());
  return ok;
}

bool Executor::runSegment(Segment &segment) {
  const PipelineElement &first = *segment.elements.front();
  printer_.before(first);
  size_t changedBefore = result_.changedPasses.size();
  Clock::time_point start = Clock::now();
  bool ok = segment.isOpaque() ? runOpaque(first, segment) : segment.manager.run(module_);
  if (options_.timing && !first.pass)
    timing_.add(first.name(), Clock::now() - start);
  if (!ok) {
    // No pass of ours failed, so the verifier did, after the last of them.
    if (result_.failingPass.empty())
      fail(*segment.elements.back());
    printer_.afterFailure(first);
    return false;
  }
  printer_.after(first, result_.changedPasses.size() != changedBefore);
  // Foreign passes may have destroyed operations in the journal.
  if (mixed_)
    context_.invalidate();
  return true;
}

void Executor::fail(const PipelineElement &element) {
  result_.ok = false;
  result_.failingPass = element.name();
}

void Executor::rollback() {
  context_.rewriter().rollback();
  if (snapshot_)
    // A Python pass may hold references to operations, which then must not be destroyed.
    snapshot_->restore(/*othersHoldOn=*/hasGuests_);
  result_.changedPasses.clear();
  result_.numChanges = 0;
}

RunResult Executor::run() {
  if (mixed_)
    snapshot_.emplace(module_);
  Clock::time_point start = Clock::now();
  for (Segment &segment : segments_)
    if (!runSegment(segment))
      break;
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

RunResult run(ir::Operation module, const Pipeline &pipeline, const RunOptions &options) {
  if (module.name().str() != kModule)
    throw std::invalid_argument("a pipeline runs on a '" + std::string(kModule) +
                                "' operation, not on '" + std::string(module.name().str()) + "'");
  return Executor(module, pipeline, options).run();
}

} // namespace hlotag::pass
