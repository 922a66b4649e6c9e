// Turns recorded dispatches into phases and gives activations their place in one pool.
#pragma once

#include <span>
#include <vector>

#include "hal/program.h"

namespace butter {

/// The smallest maximum of each word of each step block.
std::vector<StepLimit> merge_limits(const std::vector<StepLimit>& limits);

/// A dispatch that conflicts with one of the current phase starts the next phase.
void plan_phases(Plan& plan);

/// Replaces activation indices by ranges of a pool. Two activations share memory only if no
/// phase uses both, so reuse never adds a hazard.
void plan_pool(Plan& plan, std::span<const size_t> activation_bytes);

}  // namespace butter
