// SPDX-License-Identifier: MIT
//
// Instructions that follow each other more closely than the pipeline allows.
//
// gfx942 does not interlock everything: some results are there only a number of wait states later, and the
// compiler puts s_nop in between. A wait state is one instruction issued by the wave; s_nop n is n + 1 of
// them. The rules below are those of LLVM's GCNHazardRecognizer.cpp for gfx940 and gfx942, the public source;
// "needed" is how many wait states must lie between producer and consumer.
//
//   producer                             consumer                                     needed
//   transcendental result                non-transcendental VALU reads it             1
//   SDWA, op_sel partial write           VALU reads it or writes a part of it         1
//   VALU writes VGPR                     v_readlane, v_readfirstlane                  1
//   VALU writes VGPR                     DPP                                          2 (at 1: advisory)
//   VALU writes VGPR                     MFMA                                         2
//   VALU writes SGPR or vcc              VALU reads it                                2 (at 1: advisory)
//   VALU writes SGPR                     lane select of v_readlane, v_writelane       4
//   VALU writes SGPR                     vector memory reads it                       5
//   VALU writes vcc                      v_div_fmas                                   4
//   VALU writes EXEC                     DPP 5; MFMA, v_readlane and the like 4
//   v_dot                                VALU reads or writes it                      3 (same operation, as
//   C: 0) MFMA D, P passes                     MFMA A, B, VALU, memory: reads or overwrites P + 3 (f32: P +
//   2) MFMA D                               MFMA C, overlapping, not identical           P + 1 (f32: P; f32
//   to others: 0) MFMA D, 2 passes                     MFMA C, identical                            2 (more
//   passes: 0) MFMA C                               VALU overwrites it                           P - 1 (not
//   f32) f64 MFMA 4x4 / 16x16                 C 4 / 9, A and B 6 / 11, VALU 6 / 11, memory 9 / 18 store of
//   more than 64 bits           VALU overwrites the data                     2 s_setreg s_setreg, s_getreg of
//   the same register      2 SALU writes M0                       LDS-DMA (advisory), movrel, addtid,
//   messages 1
//
// Grades. LLVM counts every instruction as one state; shipped hand-written kernels come closer where
// something else stalls the wave. So a rule is broken for sure only if the states do not suffice although an
// MFMA that has to wait for the one before counts its full passes, and no s_waitcnt or s_barrier stands in
// between; otherwise it is advisory.
#pragma once

#include <memory>

#include "device/simulator/detect/session.h"

namespace attest::device::sim::detect {

std::unique_ptr<LaunchObserver> check_wait_states(const LaunchContext& launch);

}  // namespace attest::device::sim::detect
