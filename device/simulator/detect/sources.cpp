// SPDX-License-Identifier: MIT
#include "device/simulator/detect/sources.h"

namespace attest::device::sim::detect {
namespace {

// Executions told apart; of a kernel that parks more than so many, of the others only the latest by instruction.
constexpr std::size_t most = std::size_t{1} << 16;
constexpr std::uint64_t latest = ~std::uint64_t{0};

}  // namespace

Origin Sources::keep(Origin from, std::uint32_t wave, Space in) {
  Source source = find(from, wave);
  (in == Space::lds ? source.through_lds : source.through_scratch) = true;
  Key key{source.wave, source.origin, source.number, source.through_lds, source.through_scratch};
  if (kept_.size() >= most && !known_.contains(key)) std::get<2>(key) = latest;
  const auto [known, fresh] = known_.try_emplace(key, origin::kept + static_cast<Origin>(kept_.size()));
  if (fresh)
    kept_.push_back(source);
  else
    kept_[known->second - origin::kept] = source;
  return known->second;
}

Source Sources::find(Origin from, std::uint32_t wave) const {
  if (origin::is_kept(from)) return kept_[from - origin::kept];
  const auto found = loads_.find({wave, from});
  return found != loads_.end() ? found->second : Source{.origin = from, .wave = wave};
}

}  // namespace attest::device::sim::detect
