// SPDX-License-Identifier: MIT
#include "device/simulator/detect/sources.h"

#include <bit>
#include <utility>

namespace attest::device::sim::detect {
namespace {

// Executions told apart; of a kernel that parks more than so many, of the others only the latest by instruction.
constexpr std::size_t most = std::size_t{1} << 12;
constexpr std::uint64_t latest = ~std::uint64_t{0};

constexpr std::size_t number_of(Origin kept) {
  return (kept - origin::kept) / lanes;
}

}  // namespace

void Sources::loaded(const Source& source, const Places& places) {
  auto copy = std::make_shared<Places>();
  copy->mask = places.mask;
  copy->lds = places.lds;
  copy->scratch = places.scratch;
  for (std::uint64_t m = places.mask; m != 0; m &= m - 1)
    copy->address[std::countr_zero(m)] = places.address[std::countr_zero(m)];
  loads_[{source.wave, source.origin}] = {source, std::move(copy)};
}

Sources::Load Sources::load(Origin from, std::uint32_t wave) const {
  if (origin::is_kept(from)) return kept_[number_of(from)];
  const auto found = loads_.find({wave, from});
  return found != loads_.end() ? found->second : Load{{.origin = from, .wave = wave}, nullptr};
}

Origin Sources::keep(Origin from, std::uint32_t wave, Space in) {
  Load now = load(from, wave);
  Source& source = now.source;
  (in == Space::lds ? source.through_lds : source.through_scratch) = true;
  Key key{source.wave, source.origin, source.number, source.through_lds, source.through_scratch};
  if (kept_.size() >= most && !known_.contains(key)) std::get<2>(key) = latest;
  const auto [known, fresh] =
      known_.try_emplace(key, origin::kept + static_cast<Origin>(kept_.size() * lanes));
  if (fresh)
    kept_.push_back(std::move(now));
  else
    kept_[number_of(known->second)] = std::move(now);
  return origin::is_kept(from) ? known->second + from % lanes : known->second;
}

Source Sources::find(Origin from, std::uint32_t wave, int lane) const {
  const Load found = load(from, wave);
  Source source = found.source;
  const Places* const places = found.places.get();
  if (places == nullptr) return source;
  if (source.through_lds) lane = static_cast<int>(from % lanes);  // scratch is the lane's own
  const bool has = lane >= 0 && (places->mask >> lane & 1) != 0;
  source.lane = has ? lane : std::countr_zero(places->mask);
  source.address = places->address[source.lane];
  source.space = (places->lds >> source.lane & 1) != 0       ? Space::lds
                 : (places->scratch >> source.lane & 1) != 0 ? Space::scratch
                                                             : Space::global;
  return source;
}

}  // namespace attest::device::sim::detect
