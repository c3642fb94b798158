// SPDX-License-Identifier: Apache-2.0
//
// Which equations does JAX make during one bind of a primitive? See `tracing.py`.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

namespace hlotag::python {

struct Group;

/// A bind of a primitive that has not returned. Its first equation creates its group: an operation
/// that is executed rather than traced makes none.
class OpenGroup {
public:
  OpenGroup();
  ~OpenGroup();
  OpenGroup(const OpenGroup &) = delete;
  OpenGroup &operator=(const OpenGroup &) = delete;

  const std::shared_ptr<Group> &group();

  /// Of this thread; null if no bind runs.
  static thread_local OpenGroup *innermost;

private:
  OpenGroup *outer_;
  std::shared_ptr<Group> group_;
};

/// Records an equation of a trace in the innermost open group, if there is one.
void record(nanobind::handle trace, nanobind::handle equation);

void bindTraceGroups(nanobind::module_ &m);
void bindWrappedMethods(nanobind::module_ &m);

} // namespace hlotag::python
