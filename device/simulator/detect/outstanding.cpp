// SPDX-License-Identifier: MIT
#include "device/simulator/detect/outstanding.h"

#include <fmt/format.h>

#include <algorithm>

namespace attest::device::sim::detect {

Pending pending_of(const Effects& effects, std::uint32_t index, std::uint64_t number, std::uint64_t exec) {
  Pending p;
  p.index = index;
  p.number = number;
  p.unit = effects.unit;
  p.lds_dma = effects.lds_dma;
  p.vm = effects.vmcnt;
  p.lgkm = effects.lgkmcnt;
  p.lanes = effects.exec_masked ? exec : ~std::uint64_t{0};
  if (!effects.vector_writes.empty()) {
    p.result = effects.vector_writes[0];
  } else if (effects.unit == Unit::smem && !effects.scalar_writes.empty()) {
    p.result = effects.scalar_writes[0];
    p.scalar_result = true;
  }
  return p;
}

const Pending* Outstanding::find(std::uint64_t id) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), id,
                                   [](const Pending& p, std::uint64_t wanted) { return p.id < wanted; });
  return at != entries_.end() && at->id == id ? &*at : nullptr;
}

bool Outstanding::vm_in_order() const {
  return std::none_of(entries_.begin(), entries_.end(),
                      [](const Pending& p) { return p.vm && p.unit == Unit::flat; });
}

bool Outstanding::lgkm_in_order() const {
  return std::all_of(entries_.begin(), entries_.end(),
                     [](const Pending& p) { return p.lgkm == 0 || p.unit == Unit::ds; });
}

void Outstanding::wait_vm(unsigned count) {
  if (vm_ <= count || (count > 0 && !vm_in_order())) return;
  for (Pending& p : entries_) {
    if (vm_ <= count) break;
    if (!p.vm) continue;
    p.vm = false;
    --vm_;
  }
  changed_ = true;
}

void Outstanding::wait_lgkm(unsigned count) {
  if (lgkm_ <= count || (count > 0 && !lgkm_in_order())) return;
  for (Pending& p : entries_) {
    if (lgkm_ <= count) break;
    lgkm_ -= p.lgkm;
    p.lgkm = 0;
  }
  changed_ = true;
}

void Outstanding::make_room(const Pending& next) {
  // Of unordered ones nobody knows which is done; they stay, up to a number no sane kernel reaches.
  constexpr std::size_t most = 256;
  const auto finish = [this](Pending& p) {
    vm_ -= p.vm ? 1 : 0;
    lgkm_ -= p.lgkm;
    p.vm = false;
    p.lgkm = 0;
    changed_ = true;
  };
  if (entries_.size() >= most) finish(entries_.front());
  if (next.vm && vm_ >= WaitCounts::vmcnt_max && vm_in_order()) wait_vm(WaitCounts::vmcnt_max - 1);
  if (next.lgkm != 0 && lgkm_ + next.lgkm > WaitCounts::lgkmcnt_max && lgkm_in_order())
    wait_lgkm(WaitCounts::lgkmcnt_max - next.lgkm);
}

std::string Outstanding::missing(std::uint64_t id) const {
  const Pending* pending = find(id);
  if (pending == nullptr) return "nothing";
  unsigned vm_after = 0, lgkm_after = 0;
  for (const Pending* p = pending + 1; p != entries_.data() + entries_.size(); ++p) {
    vm_after += p->vm ? 1 : 0;
    lgkm_after += p->lgkm;
  }
  std::string text;
  if (pending->vm) text = fmt::format("vmcnt({})", vm_in_order() ? vm_after : 0);
  if (pending->lgkm != 0)
    text += fmt::format("{}lgkmcnt({})", text.empty() ? "" : " ", lgkm_in_order() ? lgkm_after : 0);
  return text;
}

}  // namespace attest::device::sim::detect
