// What each worker will stream next, so that it can fetch the beginning while it waits.
#pragma once

#include "cpu/submission.h"
#include "hal/program.h"

namespace butter::cpu {

/// Fills `work.stretches` from tasks whose arguments are resolved and whose chunks are counted.
/// A stretch starts where the worker's own share of the next large read starts.
void plan_lookahead(Submission& work, const Plan& plan, uint32_t workers, uint32_t warp);

}  // namespace butter::cpu
