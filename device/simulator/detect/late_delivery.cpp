// SPDX-License-Identifier: MIT
#include "device/simulator/detect/late_delivery.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "device/simulator/core/workgroup.h"
#include "device/simulator/detect/access.h"
#include "device/simulator/detect/outstanding.h"

namespace attest::device::sim::detect {
namespace {

/// What a load will bring: registers, or bytes of LDS.
struct Parcel {
  std::uint64_t id = 0;
  Registers result;
  bool scalar = false;
  std::uint64_t lanes = 0;
  std::vector<std::uint32_t> values;       ///< [count][64] or [count]; for LDS-DMA [64]
  std::vector<std::uint32_t> lds_address;  ///< LDS-DMA: [64]
};

std::uint32_t byte_mask(unsigned bytes) {
  std::uint32_t mask = 0;
  for (unsigned b = 0; b < 4; ++b)
    if ((bytes >> b & 1) != 0) mask |= 0xffu << (8 * b);
  return mask;
}

/// Puts values into the registers of the parcel, in its lanes and bytes.
void put(Wave& wave, const Parcel& p, const std::uint32_t* values) {
  if (p.scalar) {
    std::copy_n(values, p.result.count, &wave.sgpr[p.result.first]);
    return;
  }
  const std::uint32_t mask = byte_mask(p.result.bytes);
  for (unsigned r = 0; r < p.result.count; ++r) {
    std::uint32_t* row = wave.v(p.result.first + r);
    for (unsigned l = 0; l < lanes; ++l)
      if ((p.lanes >> l & 1) != 0) row[l] = (row[l] & ~mask) | (values[r * lanes + l] & mask);
  }
}

void get(const Wave& wave, const Parcel& p, std::vector<std::uint32_t>& values) {
  if (p.scalar) {
    values.assign(&wave.sgpr[p.result.first], &wave.sgpr[p.result.first] + p.result.count);
  } else {
    const std::uint32_t* first = wave.v(p.result.first);
    values.assign(first, first + std::size_t{p.result.count} * lanes);
  }
}

template <typename F>
void for_lds_lanes(const Wave& wave, const Parcel& p, F&& f) {
  for (unsigned l = 0; l < lanes; ++l) {
    if ((p.lanes >> l & 1) == 0) continue;
    const std::uint32_t at = p.lds_address[l];
    if (at <= wave.group->lds_bytes && wave.group->lds_bytes - at >= 4) f(l, wave.group->lds + at);
  }
}

void put_lds(const Wave& wave, const Parcel& p, const std::uint32_t* values) {
  for_lds_lanes(wave, p, [&](unsigned l, std::byte* at) { std::memcpy(at, &values[l], 4); });
}

void get_lds(const Wave& wave, const Parcel& p, std::vector<std::uint32_t>& values) {
  values.assign(lanes, 0);
  for_lds_lanes(wave, p, [&](unsigned l, const std::byte* at) { std::memcpy(&values[l], at, 4); });
}

struct WaveState {
  Outstanding outstanding;
  std::vector<Parcel> parcels;  ///< by ascending id
};

class Group final : public Observer {
 public:
  Group(Delivery delivery, std::uint32_t waves) : delivery_(delivery), waves_(waves) {}

  bool before(const Step& step) override {
    WaveState& w = waves_[step.wave.id_in_group];
    const Effects& e = step.effects;
    const auto done = [&](const Pending& p) { deliver(w, step.wave, p.id); };
    if (step.instruction.op == Op::s_waitcnt) {
      if (!w.outstanding.empty()) w.outstanding.wait(wait_counts(step.instruction.imm), done);
      return true;
    }
    issued_ = {};
    if (!e.vmcnt && e.lgkmcnt == 0) return true;
    const Pending p = pending_of(e, step.index, step.number, step.wave.exec());
    issued_.id = w.outstanding.issue(p, done);
    issued_.lanes = p.lanes;
    const bool to_lds = e.lds_dma && e.load && step.access != nullptr;
    if (to_lds) {
      issued_.lanes = step.access->dma;
      issued_.lds_address.assign(lanes, 0);
      for (unsigned l = 0; l < lanes; ++l)
        if ((issued_.lanes >> l & 1) != 0)
          issued_.lds_address[l] = static_cast<std::uint32_t>(step.access->address[1][l]);
      get_lds(step.wave, issued_, old_);
    } else if (p.result.count != 0 && p.lanes != 0) {
      issued_.result = p.result;
      issued_.scalar = p.scalar_result;
      get(step.wave, issued_, old_);
    } else {
      issued_.id = 0;
    }
    return true;
  }

  void after(const Step& step) override {
    if (issued_.id == 0) return;
    WaveState& w = waves_[step.wave.id_in_group];
    const bool to_lds = !issued_.lds_address.empty();
    if (delivery_ == Delivery::poison) std::fill(old_.begin(), old_.end(), undefined_register);
    if (to_lds) {
      get_lds(step.wave, issued_, issued_.values);
      put_lds(step.wave, issued_, old_.data());
    } else {
      get(step.wave, issued_, issued_.values);
      put(step.wave, issued_, old_.data());
    }
    w.parcels.push_back(std::exchange(issued_, {}));
  }

 private:
  static void deliver(WaveState& w, Wave& wave, std::uint64_t id) {
    const auto at =
        std::find_if(w.parcels.begin(), w.parcels.end(), [id](const Parcel& p) { return p.id == id; });
    if (at == w.parcels.end()) return;
    if (at->lds_address.empty())
      put(wave, *at, at->values.data());
    else
      put_lds(wave, *at, at->values.data());
    w.parcels.erase(at);
  }

  Delivery delivery_;
  std::vector<WaveState> waves_;
  Parcel issued_;                   ///< between before() and after()
  std::vector<std::uint32_t> old_;  ///< what its destination held
};

class Launch final : public LaunchObserver {
 public:
  explicit Launch(Delivery delivery) : delivery_(delivery) {}
  std::unique_ptr<Observer> observe(Workgroup& group, std::uint64_t) override {
    return std::make_unique<Group>(delivery_, group.wave_count);
  }

 private:
  Delivery delivery_;
};

}  // namespace

std::unique_ptr<LaunchObserver> deliver_late(Delivery delivery) {
  return std::make_unique<Launch>(delivery);
}

}  // namespace attest::device::sim::detect
