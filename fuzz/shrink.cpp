// SPDX-License-Identifier: MIT
#include "fuzz/shrink.h"

#include <algorithm>
#include <utility>

#include "fuzz/generate.h"

namespace attest::fuzz {

Descent::Descent(std::string kernel, std::string signature, ShrinkResult start, std::size_t budget)
    : kernel_(std::move(kernel)), signature_(std::move(signature)), best_(std::move(start)), budget_(budget) {
  open_generation();
}

void Descent::open_generation() {
  candidates_ = shrink_candidates(best_.c);
  first_ = asked_;
  allowed_ = std::min(candidates_.size(), budget_ - std::min(budget_, best_.evaluations));
  if (allowed_ == 0) {
    finished_ = true;
    best_.minimal = candidates_.empty();
  }
}

std::optional<Pool::Task> Descent::next() {
  if (finished_ || asked_ - first_ == allowed_) return std::nullopt;
  return Pool::Task{kernel_, candidates_[asked_++ - first_]};
}

bool Descent::take(std::size_t index, Evaluation evaluation) {
  if (index < first_ || finished_) return false;
  const std::size_t which = index - first_;
  ++best_.evaluations;
  if (signature_of(kernel_, candidates_[which], evaluation.verdict) == signature_) {
    best_.c = candidates_[which];
    best_.evaluation = std::move(evaluation);
    ++best_.steps;
    open_generation();
    return true;
  }
  if (which + 1 == allowed_) {
    finished_ = true;
    best_.minimal = allowed_ == candidates_.size();
  }
  return false;
}

ShrinkResult shrink(Pool& pool, const std::string& kernel, const std::string& signature,
                    const cases::Case& start, const Evaluation& evaluation, std::size_t budget,
                    const std::function<void(const ShrinkResult&)>& progress) {
  struct Alone final : Pool::Stream {
    Descent descent;
    const std::function<void(const ShrinkResult&)>& progress;
    Alone(Descent d, const std::function<void(const ShrinkResult&)>& p)
        : descent(std::move(d)), progress(p) {}
    std::optional<Pool::Task> next() override { return descent.next(); }
    void take(std::size_t index, Evaluation e) override {
      descent.take(index, std::move(e));
      if (progress) progress(descent.best());
    }
  };
  Alone alone(Descent(kernel, signature, {.c = start, .evaluation = evaluation}, budget), progress);
  std::vector<Pool::Stream*> streams = {&alone};
  pool.run(streams);
  return alone.descent.best();
}

}  // namespace attest::fuzz
