/* SPDX-License-Identifier: Apache-2.0
 *
 * Which functions and structs cross between hlotag and a plugin? Plain C, because they may be built
 * by different compilers with different standard libraries. Plugins in C++ use plugin.h instead. */
#ifndef HLOTAG_PLUGIN_ABI_H
#define HLOTAG_PLUGIN_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Increment after any change below. */
#define HLOTAG_PLUGIN_ABI 2

#ifdef __cplusplus
extern "C" {
#endif

/* The value of an option as texts: one, or those of a list of strings; null ends them. */
typedef const char *const *HlotagTexts;

typedef struct HlotagOption {
  const char *name;
  const char *type; /* bool, int, float, string, list of strings, or choices: a|b */
  HlotagTexts initial;
  const char *description;
} HlotagOption;

typedef struct HlotagReport {
  int32_t isNote;   /* belongs to the report before */
  int32_t severity; /* 0 error, 1 warning, 2 remark */
  const char *file; /* empty: none */
  int32_t line;
  int32_t column;
  const char *location; /* for people */
  const char *message;
} HlotagReport;

typedef void (*HlotagReporter)(void *sink, const HlotagReport *report);

typedef struct HlotagPass {
  const char *argument;
  const char *summary;
  const char *description;
  size_t numOptions;
  const HlotagOption *options;
  /* Runs on a builtin.module (an MlirOperation's pointer) with a value for each option. Returns 0
   * on success; otherwise hlotag restores the module. */
  int32_t (*run)(void *data, void *module, const HlotagTexts *values, HlotagReporter reporter,
                 void *sink);
  void *data; /* lives as long as the process, as the plugin does */
} HlotagPass;

typedef struct HlotagHost {
  uint32_t abi;
  const char *version;
  /* A function of MLIR's C API by its name and type ("MlirContext (MlirOperation)"), or null. */
  void *(*function)(const char *name, const char *type);
  void (*addPass)(void *state, const HlotagPass *pass);
  void (*fail)(void *state, const char *reason);
  void *state;
} HlotagHost;

typedef struct HlotagPlugin {
  uint32_t abi;
  const char *name;
  const char *version;
  /* Calls addPass for each pass, or fail. The host and what it points to live during the call. */
  void (*registerPasses)(const HlotagHost *host);
} HlotagPlugin;

/* What a plugin exports: const HlotagPlugin *hlotagGetPassPlugin(void); */
#define HLOTAG_PLUGIN_ENTRY "hlotagGetPassPlugin"

#ifdef __cplusplus
}
#endif

#endif
