// SPDX-License-Identifier: MIT
//
// From one stored value back to what it was made of
// =================================================
//
// A recording is walked backwards with a set of needs: lanes of vector registers, bits of scalar registers,
// bytes of LDS, scratch and memory. It begins with the data registers of one lane of the store. An
// instruction that writes something needed becomes part of the slice; its result is needed no more, its
// operands are. What is left of the needed bytes of memory at the beginning was there before the workgroup
// stored anything.
//
// How exactly operands are told decides whether the slice says anything: an attention output is a sum over
// all keys, and one careless instruction makes it depend on every row and column. So lanes are followed
// through DPP, ds_bpermute and readlane, matrix instructions by the element maps of matrix/forms.h, loads and
// stores by the bytes that a register holds, lane masks bit by bit. Two kinds of dependence are told apart:
//
//   value     the bits went through arithmetic: what the value is made of
//   address   they said where to load it from: page tables, indices, pointers
//
// Not followed: what decided that an instruction was executed (branches, EXEC), and the addresses of stores.
// Coarse, to the side of too much: GPR indexing, sparse matrix instructions, broadcasts (cbsz, blgp).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "device/simulator/detect/recording.h"

namespace attest::device::sim::detect {

enum class Role : std::uint8_t { value, address };

/// Where a slice begins: bytes [first, first + count) of what `lane` stores with the last instruction of the
/// recording.
struct StoredBytes {
  int lane = 0;
  unsigned part = 0;
  std::uint32_t first = 0, count = 0;  ///< within the lane's part
};

/// An instruction of the program that contributed, at the latest of its executions that did.
struct Link {
  std::uint32_t index = 0;
  std::size_t executed = 0;  ///< in Recording::all()
  std::uint64_t times = 0;   ///< executions that contributed
  Role role = Role::value;
  int lane = -1;  ///< one that was needed; -1: scalar
  /// What of its result was needed: a vector row or a scalar register; -1: a store.
  std::int32_t row = -1, scalar = -1;
};

/// Bytes that were read from memory and went into the value, and that no store of this workgroup had
/// written before.
using Ranges = std::map<std::uint64_t, std::uint64_t>;  ///< first guest address to the one behind, disjoint

struct Slice {
  std::vector<Link> links;           ///< latest first, the store itself among them
  Ranges reads[2];                   ///< by role
  std::vector<std::uint32_t> loads;  ///< instructions that read them
  std::uint64_t executions = 0;      ///< contributing executions in all
};

/// @param view,analysis of the launch
Slice slice_back(const Recording& recording, const LaunchView& view, const Analysis& analysis,
                 std::uint32_t waves, const StoredBytes& from);

}  // namespace attest::device::sim::detect
