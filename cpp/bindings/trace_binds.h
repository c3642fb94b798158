// SPDX-License-Identifier: Apache-2.0
//
// Which equations does JAX make during one bind of a primitive? See `tracing.py`.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

namespace hlotag::python {

struct Bind;

/// A bind of a primitive that has not returned. Its first equation creates its `Bind`: an operation
/// that is executed rather than traced makes none.
class OpenBind {
public:
  OpenBind();
  ~OpenBind();
  OpenBind(const OpenBind &) = delete;
  OpenBind &operator=(const OpenBind &) = delete;

  const std::shared_ptr<Bind> &bind();

  /// Of this thread; null if no bind runs.
  static thread_local OpenBind *innermost;

private:
  OpenBind *outer_;
  std::shared_ptr<Bind> bind_;
};

/// Records an equation of a trace in the innermost open bind, if there is one.
void record(nanobind::handle trace, nanobind::handle equation);

void defineBinds(nanobind::module_ &m);
void bindWrappedMethods(nanobind::module_ &m);

} // namespace hlotag::python
