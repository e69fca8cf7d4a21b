// SPDX-License-Identifier: MIT
//
// The matrix unit against three other things: a transcription of the published rule in double arithmetic that
// shares no code with the model, plain loops over small integers for the layouts, and itself (every vector
// kernel at every level against the model, bit by bit).
//
// Random data does not test these rules: on a million random steps the two published versions of the rule
// agree. So most inputs are aimed: few products that matter, the accumulator a chosen number of binades above
// them, halves of its last place and tails below every grid. The tests at the end plant wrong rules and
// demand that the same inputs catch them.
#include "device/simulator/matrix/matrix.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "device/simulator/core/fault.h"
#include "device/simulator/matrix/forms.h"

namespace sim = attest::device::sim;
using namespace attest::device::sim::matrix;
using sim::Instruction;
using sim::Op;
using sim::SimdLevel;

namespace {

// Random numbers that are the same everywhere: SplitMix64.
struct Random {
  std::uint64_t state;
  std::uint64_t bits() {
    std::uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int range(int low, int high) {
    return low + static_cast<int>(bits() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool one_in(int n) { return range(1, n) == 1; }
};

bool is_nan32(std::uint32_t bits) {
  return (bits & 0x7fffffffu) > 0x7f800000u;
}
bool same32(std::uint32_t x, std::uint32_t y) {
  return x == y || (is_nan32(x) && is_nan32(y));
}

// ---------------------------------------------------------------------------------------------------------------
// The rule once more, in doubles. Every intermediate value fits 53 bits: a step's sum spans at most 2^(G+6)
// to 2^(G-32).

struct TypeFacts {
  int mantissa_bits, exponent_bits, bias;
  bool fnuz;
  [[nodiscard]] int min_exponent() const { return 1 - bias; }
};

TypeFacts facts(Element type) {
  switch (type) {
    case Element::f16:
      return {10, 5, 15, false};
    case Element::bf16:
      return {7, 8, 127, false};
    case Element::fp8:
      return {3, 4, 8, true};
    case Element::bf8:
      return {2, 5, 16, true};
    default:
      return {23, 8, 127, false};
  }
}

double value_of(Element type, std::uint32_t bits) {
  const TypeFacts t = facts(type);
  const int sign_at = t.mantissa_bits + t.exponent_bits;
  const double sign = (bits >> sign_at & 1) ? -1.0 : 1.0;
  if (t.fnuz && bits == (1u << sign_at)) return std::numeric_limits<double>::quiet_NaN();
  const int field = static_cast<int>(bits >> t.mantissa_bits & ((1u << t.exponent_bits) - 1));
  double mantissa = bits & ((1u << t.mantissa_bits) - 1);
  if (!t.fnuz && field == (1 << t.exponent_bits) - 1)
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  if (type == Element::xf32) mantissa = 8192 * std::floor(mantissa / 8192);
  if (field == 0) return sign * std::ldexp(mantissa, 1 - t.bias - t.mantissa_bits);
  return sign * std::ldexp(1.0 + std::ldexp(mantissa, -t.mantissa_bits), field - t.bias);
}

int exponent_in(double x, int min_exponent) {
  int e = 0;
  std::frexp(x, &e);
  return std::max(e - 1, min_exponent);
}
double trunc_at(double x, int grid) {
  return std::ldexp(std::trunc(std::ldexp(x, -grid)), grid);
}
double floor_at(double x, int grid) {
  return std::ldexp(std::floor(std::ldexp(x, -grid)), grid);
}

/// Deviations from the rule that the tests must be able to see.
enum class Mutant {
  none,
  round_products,
  truncate_c,
  floor_at_31,
  no_final_floor,
  early_drop,
  late_drop,
  no_groups
};

float literal_step(SumRule rule, Element ta, Element tb, const std::uint32_t* a, const std::uint32_t* b,
                   int k, float c, Mutant mutant) {
  const bool grouped = facts(ta).fnuz;
  double products[16] = {}, special = static_cast<double>(c);
  int exponents[16] = {};
  bool is_special = !std::isfinite(c);
  for (int i = 0; i < k; ++i) {
    const double x = value_of(ta, a[i]), y = value_of(tb, b[i]);
    products[i] = x * y;
    if (std::fabs(products[i]) >= std::ldexp(1.0, 128))
      products[i] *= std::numeric_limits<double>::infinity();
    if (!std::isfinite(products[i])) {
      is_special = true;
      special += products[i];
    }
    exponents[i] = products[i] != 0
                       ? exponent_in(x, facts(ta).min_exponent()) + exponent_in(y, facts(tb).min_exponent())
                       : (rule == SumRule::aligned ? -126 : -999);
  }
  if (is_special) return static_cast<float>(special);

  const int groups = grouped && mutant != Mutant::no_groups ? 2 : 1;
  int group_exponent[2] = {-999, -999};
  double group_sum[2] = {0, 0};
  for (int i = 0; i < k; ++i) group_exponent[i % groups] = std::max(group_exponent[i % groups], exponents[i]);
  for (int i = 0; i < k; ++i) {
    const int grid = group_exponent[i % groups] - 24;
    group_sum[i % groups] += mutant == Mutant::round_products
                                 ? std::ldexp(std::nearbyint(std::ldexp(products[i], -grid)), grid)
                                 : trunc_at(products[i], grid);
  }
  const int e = std::max(group_exponent[0], group_exponent[1]);
  const double dot =
      groups == 2 ? floor_at(group_sum[0], e - 24) + floor_at(group_sum[1], e - 24) : group_sum[0];

  const int e_c = exponent_in(static_cast<double>(c), -126);
  const int g = std::max(e, c == 0 ? -126 : e_c);
  const int window = mutant == Mutant::early_drop ? 24 : mutant == Mutant::late_drop ? 26 : 25;
  double accumulator = mutant == Mutant::truncate_c ? trunc_at(static_cast<double>(c), g - 24)
                                                    : floor_at(static_cast<double>(c), g - 24);
  if (grouped && e_c < g - window) accumulator = 0;
  const bool old_grid = rule == SumRule::aligned || mutant == Mutant::floor_at_31;
  double sum = floor_at(dot, g - (old_grid ? 31 : 32)) + accumulator;
  if (rule == SumRule::renormalised && mutant != Mutant::no_final_floor)
    sum = floor_at(sum, exponent_in(sum, -126) - 31);
  return sum == 0 ? 0.0f : static_cast<float>(sum);
}

std::uint32_t literal_dot(SumRule rule, Element ta, Element tb, const std::uint32_t* a,
                          const std::uint32_t* b, int k, std::uint32_t c_bits, Mutant mutant = Mutant::none) {
  float c = std::bit_cast<float>(c_bits);
  const int length = ta == Element::xf32 ? 4 : facts(ta).fnuz ? 16 : 8;
  for (int first = 0; first < k; first += length)
    c = literal_step(rule, ta, tb, a + first, b + first, std::min(length, k - first), c, mutant);
  return std::bit_cast<std::uint32_t>(c);
}

// ---------------------------------------------------------------------------------------------------------------
// Inputs.

std::uint32_t encode(Element type, bool negative, int exponent, std::uint32_t mantissa) {
  const TypeFacts t = facts(type);
  const int top = (1 << t.exponent_bits) - (t.fnuz ? 1 : 2);
  const int field = std::clamp(exponent + t.bias, 0, top);
  mantissa &= (1u << t.mantissa_bits) - 1;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(field) << t.mantissa_bits | mantissa;
  if (magnitude == 0 && t.fnuz) return 0;
  return static_cast<std::uint32_t>(negative) << (t.mantissa_bits + t.exponent_bits) | magnitude;
}

std::uint32_t infinity_of(Element type) {
  return ((1u << facts(type).exponent_bits) - 1) << facts(type).mantissa_bits;
}

std::uint32_t random_element(Element type, Random& random) {
  return static_cast<std::uint32_t>(random.bits()) & (bits_of(type) == 32 ? ~0u : (1u << bits_of(type)) - 1);
}

/// Matrices of one instruction with f32 accumulation, row-major: a [m, k], b [n, k] (columns), c [m, n].
struct Problem {
  Element type_a, type_b;
  int m, n, k;
  std::vector<std::uint32_t> a, b, c;
  Problem(Element ta, Element tb, int rows, int columns, int depth)
      : type_a(ta), type_b(tb), m(rows), n(columns), k(depth), a(size(m, k)), b(size(n, k)), c(size(m, n)) {}
  static std::size_t size(int x, int y) { return static_cast<std::size_t>(x) * static_cast<std::size_t>(y); }
  std::uint32_t* row(int i) { return &a[size(i, k)]; }
  std::uint32_t* column(int j) { return &b[size(j, k)]; }
  std::uint32_t& accumulator(int i, int j) { return c[size(i, n) + static_cast<std::size_t>(j)]; }
};

/// The largest product exponent of a step of row i and column j; -140 if all products are zero.
int step_exponent(Problem& p, int i, int j, int first, int count) {
  int e = -140;
  for (int s = first; s < first + count; ++s) {
    const double x = value_of(p.type_a, p.row(i)[s]), y = value_of(p.type_b, p.column(j)[s]);
    if (x * y != 0 && std::isfinite(x * y))
      e = std::max(
          e, exponent_in(x, facts(p.type_a).min_exponent()) + exponent_in(y, facts(p.type_b).min_exponent()));
  }
  return e;
}

std::uint32_t edge_mantissa(Random& random) {
  switch (random.range(0, 6)) {
    case 0:
      return 0;
    case 1:
      return 0x7fffff;
    case 2:
      return 1;
    case 3:
      return 0x7ffffe;
    case 4:
      return 0x400000;
    case 5:
      return 0x3fffff;
    default:
      return static_cast<std::uint32_t>(random.bits()) & 0x7fffff;
  }
}

std::uint32_t f32_at(bool negative, int exponent, std::uint32_t mantissa) {
  return encode(Element::f32, negative, exponent, mantissa);
}

/// c = +-2^exponent * 1.mantissa with a mantissa at an edge.
std::uint32_t edge_at(Random& random, int exponent) {
  const bool negative = random.one_in(2);
  return f32_at(negative, exponent, edge_mantissa(random));
}

enum class Data { bits, gaussian, spread, extreme, zeros, specials, aimed, ties, window, bounds, integers };
constexpr Data all_data[] = {Data::bits,   Data::gaussian, Data::spread,  Data::extreme,
                             Data::zeros,  Data::specials, Data::aimed,   Data::ties,
                             Data::window, Data::bounds,   Data::integers};

void fill(Problem& p, Data data, Random& random) {
  const int length = step_length(p.type_a);
  const auto each = [&](auto&& make) {
    for (std::uint32_t& x : p.a) x = make(p.type_a);
    for (std::uint32_t& x : p.b) x = make(p.type_b);
  };
  const auto sized = [&](Element type, int low, int high) {
    // One at a time: the order in which arguments are evaluated is the compiler's.
    const bool negative = random.one_in(2);
    const int exponent = random.range(low, high);
    return encode(type, negative, exponent, static_cast<std::uint32_t>(random.bits()));
  };
  constexpr int low = -3, high = 2, tie_origin = 28;
  int c_low = 0, c_high = 0, c_kind = 0;  // of Data::bounds
  switch (data) {
    case Data::bits:
    case Data::specials:
      each([&](Element type) { return random_element(type, random); });
      break;
    case Data::gaussian: {
      const int scale = random.range(-8, 8);
      each([&](Element type) {  // a sum of exponents that falls off like N(0, 1) below and fast above
        int e = 1;
        while (e > -12 && random.one_in(2)) --e;
        return random.one_in(40) ? sized(type, scale + 1, scale + 2) : sized(type, scale + e, scale + e);
      });
      break;
    }
    case Data::spread: {
      const int spread = random.range(1, 70);
      each([&](Element type) { return sized(type, -spread, spread); });
      break;
    }
    case Data::extreme: {
      const bool top = random.one_in(2);
      each([&](Element type) {
        const int edge = top ? facts(type).bias : facts(type).min_exponent();
        return random.one_in(3) ? sized(type, -2, 2) : sized(type, edge - 3, edge + 3);
      });
      break;
    }
    case Data::zeros:
      each([&](Element type) { return random.one_in(4) ? sized(type, low, high) : 0u; });
      c_low = -random.range(90, 128);
      for (int s = 0; s < p.k; s += length)
        if (random.one_in(2))
          for (int i = 0; i < p.m; ++i) std::fill_n(p.row(i) + s, std::min(length, p.k - s), 0u);
      break;
    case Data::aimed:
    case Data::window: {
      // Few k matter. Rows differ in pattern; columns shift it, or add one of their own.
      std::fill(p.a.begin(), p.a.end(), 0u);
      std::fill(p.b.begin(), p.b.end(), 0u);
      const bool narrow = bits_of(p.type_a) == 8, uneven = random.one_in(2);
      const int top_a = narrow ? facts(p.type_a).bias - 2 : random.range(-10, 10);
      const int top_b = narrow ? facts(p.type_b).bias - 2 : random.range(-8, 8);
      const int depth = narrow ? 2 * facts(p.type_a).bias : 27;
      for (int s = 0; s < p.k; ++s) {
        if (!random.one_in(length / 3 + 1)) continue;
        for (int i = 0; i < p.m; ++i)
          p.row(i)[s] = sized(p.type_a, top_a - (random.one_in(3) ? 0 : random.range(0, depth)), top_a);
        for (int j = 0; j < p.n; ++j)
          p.column(j)[s] =
              sized(p.type_b, top_b - (uneven ? random.range(0, depth) : j), top_b - (uneven ? 0 : j));
      }
      break;
    }
    case Data::bounds: {
      // Where the kernels change their way: sums of exponents and distances between them near the ends of
      // f32's range. Some rows and columns are large throughout, some small, some mixed.
      static constexpr int tops[] = {4,   23,  24,  25, 26,  45,  60,  119, 120, 121, 126,
                                     127, 128, 100, -5, -50, -70, -75, -76, -90, -105};
      static constexpr int distances[] = {0, 3, 20, 99, 100, 101, 140, 150, 155, 160, 180, 200};
      const int top = tops[random.range(0, 20)], distance = distances[random.range(0, 11)];
      const int top_a = std::clamp(random.one_in(3) ? 127 : random.range(-20, 100), std::max(top - 127, -120),
                                   std::min(top + 120, 127));
      const int part = random.range(0, distance);
      const auto fill_lines = [&](std::vector<std::uint32_t>& matrix, Element type, int largest, int span) {
        for (std::size_t line = 0; line < matrix.size(); line += static_cast<std::size_t>(p.k)) {
          const int kind = random.range(0, 3);
          for (std::size_t s = 0; s < static_cast<std::size_t>(p.k); ++s) {
            const bool large = kind == 0 || (kind >= 2 && random.one_in(4));
            const int exponent = large       ? largest
                                 : kind == 3 ? largest - random.range(0, span)
                                             : largest - span;
            matrix[line + s] = random.one_in(12) ? 0 : sized(type, exponent, exponent);
          }
        }
      };
      fill_lines(p.a, p.type_a, top_a, part);
      fill_lines(p.b, p.type_b, top - top_a, distance - part);
      c_low = std::max(top - 24, 0) - 101 - (random.one_in(4) ? 1 : 0);
      c_high = 123 + (random.one_in(2) ? random.range(1, 4) : 0);
      c_kind = random.range(0, 3);
      break;
    }
    case Data::integers: {
      // fp8 around the largest and smallest numbers that sixteen-bit integers hold, with sums that come near
      // 2^30.
      const int top_a = random.range(2, 6), top_b = random.range(3, 5) - top_a, sign = random.range(0, 2);
      const auto make = [&](Element type, int top) {
        const bool negative = sign == 0 && random.one_in(2);
        const int exponent = random.one_in(5) ? random.range(-9, top) : top;
        const bool full = !random.one_in(4);
        return encode(type, negative, exponent, full ? 0x7fffffu : static_cast<std::uint32_t>(random.bits()));
      };
      for (std::uint32_t& x : p.a) x = make(p.type_a, top_a);
      for (std::uint32_t& x : p.b) x = make(p.type_b, top_b);
      break;
    }
    case Data::ties: {
      // Powers of two where c, 2^origin * 2^shift, has its last place, half of it, and its grids.
      static constexpr int offsets[] = {-22, -23, -24, -24, -25, -25, -26, -30, -31, -32, -33, -34};
      std::fill(p.a.begin(), p.a.end(), 0u);
      std::fill(p.b.begin(), p.b.end(), 0u);
      // Where exponents reach so far, also around the subnormals of f32: c below 2^-126.
      const bool tiny = facts(p.type_a).exponent_bits == 8 && random.one_in(3);
      const int origin_a = tiny ? -20 : tie_origin, origin_b = tiny ? -106 : 0;
      c_low = tiny ? -127 : tie_origin;
      const int first = length * random.range(0, (p.k - 1) / length), count = random.range(2, 4);
      for (int used = 0; used < count; ++used) {
        const int s = first + random.range(0, std::min(length, p.k - first) - 1);
        for (int i = 0; i < p.m; ++i) {
          const int exponent = origin_a + offsets[random.range(0, 11)];
          p.row(i)[s] = encode(p.type_a, random.one_in(2), exponent, 0);
        }
        for (int j = 0; j < p.n; ++j)
          p.column(j)[s] = encode(p.type_b, random.one_in(2), origin_b + (tiny ? 0 : j % 4), 0);
      }
      break;
    }
  }
  if (data == Data::specials) {  // mostly ordinary, a few NaN, infinities and huge numbers
    each([&](Element type) {
      if (!random.one_in(12)) return sized(type, low, high);
      switch (random.range(0, 3)) {
        case 0:
          if (facts(type).fnuz) return 0x80u;
          return encode(type, random.one_in(2), 0, 0) | infinity_of(type) |
                 (random.one_in(2) ? infinity_of(type) >> 1 & ~infinity_of(type) : 0u);
        case 1:
          return random_element(type, random);
        case 2:
          return sized(type, 500, 500);
        default:
          return 0u;
      }
    });
  }
  for (int i = 0; i < p.m; ++i)
    for (int j = 0; j < p.n; ++j) {
      std::uint32_t c = 0;
      const int step = length * random.range(0, (p.k - 1) / length);
      const int e = step_exponent(p, i, j, step, std::min(length, p.k - step));
      switch (data) {
        case Data::bits:
          c = static_cast<std::uint32_t>(random.bits());
          break;
        case Data::gaussian:
          c = random.one_in(8) ? 0 : edge_at(random, e + random.range(-4, 6));
          break;
        case Data::specials:
          c = edge_at(random, random.range(-4, 4));
          if (random.one_in(16)) {  // the largest binade, infinity, NaN
            static constexpr std::uint32_t far[] = {0x7f000001u, 0xff7fffffu, 0x7f800000u,
                                                    0xff800000u, 0x7f800001u, 0xffc00000u};
            c = far[random.range(0, 5)];
          }
          break;
        case Data::ties:
          c = random.one_in(2) ? edge_at(random, c_low + j % 4) : f32_at(random.one_in(2), c_low + j % 4, 0);
          break;
        case Data::bounds:
          if (c_kind == 0) break;
          c = edge_at(random, c_kind == 1 ? (random.one_in(2) ? random.range(c_low, c_low + 12)
                                                              : c_high - random.range(0, 3))
                                          : std::clamp(e + random.range(-30, 30), c_low, c_high));
          if (random.one_in(20)) c = random.one_in(2) ? 0 : 0x80000000u;
          break;
        case Data::zeros: {
          const bool none = e == -140;
          c = edge_at(random, none ? random.range(c_low, c_low + 20) : e + random.range(-4, 20));
          break;
        }
        case Data::window:  // where c leaves and enters the picture, below and above
          c = edge_at(random, e + (random.one_in(2) ? random.range(-29, -21) : random.range(22, 36)));
          break;
        default: {
          const int distance = random.range(0, 9) < 6 ? random.range(4, 26) : random.range(-30, 40);
          c = edge_at(random, e + distance);
          if (random.one_in(20)) c = random.one_in(2) ? 0 : 0x80000000u;
        }
      }
      p.accumulator(i, j) = c;
    }
}

// ---------------------------------------------------------------------------------------------------------------
// Running one instruction.

constexpr std::uint32_t rows_in_file = 512;

struct Machine {
  std::vector<std::uint32_t> storage = std::vector<std::uint32_t>(rows_in_file * 64 + 16);
  sim::Wave wave;
  Machine() {
    const auto address = reinterpret_cast<std::uintptr_t>(storage.data());
    wave.vgpr = storage.data() + (64 - address % 64) % 64 / 4;
    wave.vgpr_count = rows_in_file;
    wave.accum_offset = 256;
    wave.mode = 0xf0;  // denormals kept
    wave.set_s64(126, ~std::uint64_t{0});
  }
};

constexpr std::uint16_t row_a = 256 + 8, row_b = 256 + 16, row_index = 256 + 20, row_c = 256 + 64,
                        row_d = 256 + 300;

Instruction instruction_of(const Form& form) {
  Instruction instruction;
  instruction.op = form.op;
  instruction.encoding = sim::Encoding::mai;
  instruction.size_bytes = 8;
  instruction.dst = form.sparse ? row_c : row_d;
  instruction.src[0] = row_a;
  instruction.src[1] = row_b;
  instruction.src[2] = form.sparse ? row_index : row_c;
  return instruction;
}

void put(Machine& machine, std::uint16_t first, int bits, int lane, int item, std::uint32_t value) {
  const int bit = item * bits;
  std::uint32_t& word = machine.wave.v(first - 256u + static_cast<std::uint32_t>(bit / 32))[lane];
  const std::uint32_t mask = bits == 32 ? ~0u : ((1u << bits) - 1) << (bit % 32);
  word = (word & ~mask) | (value << (bit % 32) & mask);
}

// Where things lie, written the other way round than forms.h: from the register to the matrix element.
struct Where {
  int block, row, k;
};
Where a_at(const Form& form, int lane, int item) {
  const int q = lane / form.m;
  return {q % form.blocks, lane % form.m, q / form.blocks * form.per_lane_a() + item};
}
Where b_at(const Form& form, int lane, int item) {
  const int q = lane / form.n;
  return {q % form.blocks, lane % form.n, q / form.blocks * form.per_lane_b() + item};
}
struct Cell {
  int block, row, column;
};
Cell d_at(const Form& form, int lane, int item) {
  if (form.a == Element::f64 && form.m == 16) return {0, 4 * item + lane / 16, lane % 16};
  if (form.a == Element::f64) return {lane / 16, lane / 4 % 4, lane % 4};
  if (form.m == 32) return {item / 16, 8 * (item % 16 / 4) + 4 * (lane / 32) + item % 4, lane % 32};
  if (form.m == 16) return {item / 4, 4 * (lane / 16) + item % 4, lane % 16};
  return {lane / 4, item, lane % 4};
}

/// Puts a problem into every block of a dense form.
void place(Machine& machine, const Form& form, Problem& p) {
  for (int lane = 0; lane < 64; ++lane) {
    for (int item = 0; item < form.per_lane_a(); ++item) {
      const Where at = a_at(form, lane, item);
      put(machine, row_a, bits_of(form.a), lane, item, p.row(at.row)[at.k]);
    }
    for (int item = 0; item < form.per_lane_b(); ++item) {
      const Where at = b_at(form, lane, item);
      put(machine, row_b, bits_of(form.b), lane, item, p.column(at.row)[at.k]);
    }
    for (int item = 0; item < form.registers_d(); ++item) {
      const Cell at = d_at(form, lane, item);
      put(machine, row_c, 32, lane, item, p.accumulator(at.row, at.column));
    }
  }
}

bool accumulates_by_rule(const Form& form) {
  return form.a != Element::f64 && form.a != Element::f32 && form.a != Element::i8;
}

std::string name_of(const Form& form) {
  return std::string(sim::info(form.op).name);
}

}  // namespace

TEST_CASE("the published examples") {
  // Equation 10 of arXiv:2511.10909: the exact answer is -0.875.
  const double a[] = {-8192, -0.5, -0.25, -0.125}, b[] = {1024, 1, 1, 1};
  const std::uint32_t c = std::bit_cast<std::uint32_t>(8388608.0f);
  const auto run = [&](SumRule rule, Element type, int k) {
    std::uint32_t x[16] = {}, y[16] = {};
    for (int i = 0; i < 4; ++i) {
      int ea = 0, eb = 0;
      std::frexp(a[i], &ea);
      std::frexp(b[i], &eb);
      x[i] = encode(type, true, ea - 1, 0);
      y[i] = encode(type, false, eb - 1, 0);
      REQUIRE(value_of(type, x[i]) == a[i]);
      REQUIRE(value_of(type, y[i]) == b[i]);
    }
    return std::bit_cast<float>(dot_accumulate(rule, type, type, x, y, k, c));
  };
  for (const SumRule rule : {SumRule::renormalised, SumRule::aligned}) {
    CHECK(run(rule, Element::f16, 8) == -0.5f);
    CHECK(run(rule, Element::bf16, 8) == -0.5f);
    CHECK(run(rule, Element::bf8, 16) == -1.0f);
  }
}

TEST_CASE("the model is the rule, written twice") {
  struct Types {
    Element a, b;
    int k;
  };
  const Types types[] = {{Element::bf16, Element::bf16, 16}, {Element::f16, Element::f16, 16},
                         {Element::xf32, Element::xf32, 8},  {Element::bf16, Element::bf16, 4},
                         {Element::fp8, Element::fp8, 32},   {Element::fp8, Element::bf8, 32},
                         {Element::bf8, Element::fp8, 32},   {Element::bf8, Element::bf8, 16}};
  for (const Types& t : types)
    for (const SumRule rule : {SumRule::renormalised, SumRule::aligned}) {
      Random random{1};
      int rules_differ = 0;
      for (const Data data : all_data)
        for (int round = 0; round < 40; ++round) {
          Problem p(t.a, t.b, 8, 8, t.k);
          fill(p, data, random);
          int wrong = 0;
          for (int i = 0; i < p.m; ++i)
            for (int j = 0; j < p.n; ++j) {
              const std::uint32_t c = p.accumulator(i, j);
              const std::uint32_t model = dot_accumulate(rule, t.a, t.b, p.row(i), p.column(j), t.k, c);
              wrong += !same32(model, literal_dot(rule, t.a, t.b, p.row(i), p.column(j), t.k, c));
              rules_differ += !same32(
                  model, dot_accumulate(rule == SumRule::aligned ? SumRule::renormalised : SumRule::aligned,
                                        t.a, t.b, p.row(i), p.column(j), t.k, c));
            }
          INFO("types " << int(t.a) << " " << int(t.b) << " data " << int(data) << " rule " << int(rule));
          REQUIRE(wrong == 0);
        }
      INFO("types " << int(t.a) << " " << int(t.b));
      CHECK(rules_differ > 0);  // the switch does something, and these inputs see it
    }
}

TEST_CASE("wrong rules are caught") {
  const auto caught = [](Element ta, Element tb, int k, Mutant mutant) {
    Random random{2};
    int differ = 0;
    for (const Data data : {Data::aimed, Data::ties, Data::window})
      for (int round = 0; round < 120; ++round) {
        Problem p(ta, tb, 8, 8, k);
        fill(p, data, random);
        for (int i = 0; i < p.m; ++i)
          for (int j = 0; j < p.n; ++j)
            differ += !same32(
                dot_accumulate(default_sum_rule, ta, tb, p.row(i), p.column(j), k, p.accumulator(i, j)),
                literal_dot(default_sum_rule, ta, tb, p.row(i), p.column(j), k, p.accumulator(i, j), mutant));
      }
    return differ;
  };
  for (const Element type : {Element::bf16, Element::f16, Element::fp8, Element::bf8}) {
    const int k = bits_of(type) == 8 ? 32 : 16;
    INFO("type " << int(type));
    CHECK(caught(type, type, k, Mutant::none) == 0);
    CHECK(caught(type, type, k, Mutant::round_products) > 0);
    CHECK(caught(type, type, k, Mutant::truncate_c) > 0);
    CHECK(caught(type, type, k, Mutant::floor_at_31) > 0);
    CHECK(caught(type, type, k, Mutant::no_final_floor) > 0);
    if (bits_of(type) == 8) {
      CHECK(caught(type, type, k, Mutant::early_drop) > 0);
      CHECK(caught(type, type, k, Mutant::late_drop) > 0);
      CHECK(caught(type, type, k, Mutant::no_groups) > 0);
    }
  }
}

namespace {

std::vector<SimdLevel> levels_here() {
  std::vector<SimdLevel> levels{SimdLevel::baseline};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) levels.push_back(SimdLevel::avx2);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi"))
    levels.push_back(SimdLevel::avx512);
#endif
  return levels;
}

/// What executes a form in the tests: the model (first) and every level's choice.
std::vector<sim::Handler> handlers_for(const Instruction& instruction, SumRule rule = default_sum_rule) {
  std::vector<sim::Handler> handlers{model_handler(instruction, rule)};
  for (const SimdLevel level : levels_here()) handlers.push_back(handler(instruction, level, rule));
  return handlers;
}

TEST_CASE("the environment chooses the rule of sums") {
  const Instruction instruction = instruction_of(*form_of(Op::v_mfma_f32_16x16x16_bf16));
  for (const SimdLevel level : levels_here()) {
    const sim::Handler renormalised = handler(instruction, level, SumRule::renormalised);
    const sim::Handler aligned = handler(instruction, level, SumRule::aligned);
    REQUIRE(renormalised != aligned);
    CHECK(sim::matrix_handler(instruction, level) == renormalised);
    setenv("ATTEST_SIM_MFMA", "aligned", 1);
    CHECK(sim::matrix_handler(instruction, level) == aligned);
    unsetenv("ATTEST_SIM_MFMA");
  }
  CHECK_FALSE(sum_rule_named("alligned"));
}

std::uint32_t small_integer(Element type, int value) {
  if (type == Element::i8) return static_cast<std::uint32_t>(value) & 0xffu;
  if (value == 0) return 0;
  const int magnitude = std::abs(value), e = magnitude >= 2 ? 1 : 0;
  const std::uint32_t half = magnitude == 3 ? 1u << (facts(type).mantissa_bits - 1) : 0u;
  return encode(type, value < 0, e, half);
}

void put_integer(Machine& machine, std::uint16_t first, Element type, int lane, int item, int value) {
  if (type != Element::f64) {
    put(machine, first, bits_of(type), lane, item, small_integer(type, value));
    return;
  }
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(static_cast<double>(value));
  put(machine, first, 32, lane, 2 * item, static_cast<std::uint32_t>(bits));
  put(machine, first, 32, lane, 2 * item + 1, static_cast<std::uint32_t>(bits >> 32));
}

struct Modifiers {
  int cbsz = 0, abid = 0, blgp = 0;
};

/// Small integers through one form: D against a plain loop, for the model and every level.
void check_layout(const Form& form, Modifiers modifiers, Random& random, bool inline_c) {
  Machine machine;
  int a[16][32][64] = {}, b[16][64][32] = {};
  int lane_a[64][16], lane_b[64][16];
  std::uint32_t indices[64];
  for (int lane = 0; lane < 64; ++lane) {
    indices[lane] = 0;
    for (int pair = 0; pair < 8; ++pair) {  // two different places among four, ascending
      const int first = random.range(0, 2), second = random.range(first + 1, 3);
      indices[lane] |= static_cast<std::uint32_t>(first | second << 2) << (4 * pair);
    }
    machine.wave.v(row_index - 256u)[lane] = indices[lane];
    for (int item = 0; item < form.per_lane_a(); ++item)
      put_integer(machine, row_a, form.a, lane, item, lane_a[lane][item] = random.range(-3, 3));
    for (int item = 0; item < form.per_lane_b(); ++item)
      put_integer(machine, row_b, form.b, lane, item, lane_b[lane][item] = random.range(-3, 3));
  }
  const bool swizzles = form.a != Element::f64 && !form.sparse;
  for (int lane = 0; lane < 64; ++lane) {
    const int width = 64 >> modifiers.cbsz;
    const int from_a = swizzles ? modifiers.abid * width + lane % width : lane;
    const int quarter = lane % 16;
    const int sources[] = {lane,    lane % 32,    lane % 32 + 32, lane < 48 ? lane + 16 : lane - 48,
                           quarter, quarter + 16, quarter + 32,   quarter + 48};
    const int from_b = swizzles ? sources[modifiers.blgp] : lane;
    for (int item = 0; item < form.per_lane_a(); ++item) {
      const Where at = a_at(form, lane, item);
      int k = at.k;
      if (form.sparse) {
        const int set = modifiers.cbsz == 0 ? modifiers.abid % (bits_of(form.a) == 16 ? 4 : 2) : 0;
        const int bit = set * (bits_of(form.a) == 16 ? 8 : 16) + item * 2;
        k = at.k / 2 * 4 + static_cast<int>(indices[lane] >> bit & 3);
      }
      a[at.block][at.row][k] = lane_a[from_a][item];
    }
    for (int item = 0; item < form.per_lane_b(); ++item) {
      const Where at = b_at(form, lane, item);
      b[at.block][at.k][at.row] = lane_b[from_b][item];
    }
  }
  Instruction instruction = instruction_of(form);
  instruction.cbsz = static_cast<std::uint8_t>(modifiers.cbsz);
  instruction.abid = static_cast<std::uint8_t>(modifiers.abid);
  instruction.blgp = static_cast<std::uint8_t>(modifiers.blgp);
  const bool constant_c = inline_c && !form.sparse;
  if (constant_c) instruction.src[2] = form.a == Element::i8 ? 128 + 7 : 247;  // 7, -4.0
  const int per_lane_c = form.registers_d() / (form.a == Element::f64 ? 2 : 1);
  std::vector<int> c(static_cast<std::size_t>(64 * per_lane_c));
  for (int& x : c) x = constant_c ? (form.a == Element::i8 ? 7 : -4) : random.range(-3, 3);
  const auto store_c = [&] {
    for (int lane = 0; lane < 64; ++lane)
      for (int item = 0; item < per_lane_c; ++item) {
        const int value = c[static_cast<std::size_t>(lane * per_lane_c + item)];
        if (form.a == Element::i8)
          put(machine, row_c, 32, lane, item, static_cast<std::uint32_t>(value));
        else
          put_integer(machine, row_c, form.a == Element::f64 ? Element::f64 : Element::f32, lane, item,
                      value);
      }
  };
  const int negate = form.a == Element::f64 ? modifiers.blgp : 0;
  int which = 0;
  for (const sim::Handler run : handlers_for(instruction)) {
    REQUIRE(run != nullptr);
    store_c();
    machine.wave.set_s64(126, random.bits());  // EXEC must not matter
    run(machine.wave, instruction);
    int wrong = 0;
    for (int lane = 0; lane < 64; ++lane)
      for (int item = 0; item < per_lane_c; ++item) {
        const Cell at = d_at(form, lane, item);
        int expected = c[static_cast<std::size_t>(lane * per_lane_c + item)] * ((negate & 4) != 0 ? -1 : 1);
        for (int k = 0; k < form.k; ++k)
          expected += a[at.block][at.row][k] * b[at.block][k][at.column] * ((negate & 1) != 0 ? -1 : 1) *
                      ((negate & 2) != 0 ? -1 : 1);
        const std::uint32_t* d = machine.wave.v(instruction.dst - 256u);
        if (form.a == Element::f64) {
          const std::uint64_t bits = d[2 * item * 64 + lane] | std::uint64_t{d[(2 * item + 1) * 64 + lane]}
                                                                   << 32;
          wrong += std::bit_cast<double>(bits) != expected;
        } else if (form.a == Element::i8) {
          wrong += d[item * 64 + lane] != static_cast<std::uint32_t>(expected);
        } else {
          wrong += std::bit_cast<float>(d[item * 64 + lane]) != static_cast<float>(expected);
        }
      }
    INFO(name_of(form) << " cbsz " << modifiers.cbsz << " abid " << modifiers.abid << " blgp "
                       << modifiers.blgp << " handler " << which++);
    REQUIRE(wrong == 0);
  }
}

}  // namespace

TEST_CASE("every element lies where the manual says") {
  Random random{3};
  int forms = 0;
  for (const Form& form : all_forms()) {
    check_layout(form, {}, random, false);
    check_layout(form, {}, random, true);
    ++forms;
  }
  CHECK(forms == 46);
}

TEST_CASE("register counts agree with the opcode table") {
  for (const Form& form : all_forms()) {
    const sim::OpInfo& info = sim::info(form.op);
    INFO(name_of(form));
    CHECK(static_cast<unsigned>(form.registers_a()) == sim::dwords(info.src[0]));
    CHECK(static_cast<unsigned>(form.registers_b()) == sim::dwords(info.src[1]));
    CHECK(static_cast<unsigned>(form.registers_d()) == sim::dwords(info.dst));
  }
}

TEST_CASE("broadcasts, permutations, negations and sparse index sets") {
  Random random{4};
  for (const Form& form : all_forms()) {
    if (form.sparse) {
      for (int cbsz = 0; cbsz < 2; ++cbsz)
        for (int abid = 0; abid < 4; ++abid) check_layout(form, {cbsz, abid, 0}, random, false);
      continue;
    }
    for (int blgp = 1; blgp < 8; ++blgp) check_layout(form, {0, 0, blgp}, random, false);
    if (form.a == Element::f64) continue;
    for (int cbsz = 1; (1 << cbsz) <= form.blocks; ++cbsz)
      for (int abid = 0; abid < (1 << cbsz); ++abid)
        check_layout(form, {cbsz, abid, random.range(0, 7)}, random, false);
  }
}

TEST_CASE("illegal broadcasts and foreign operands are refused") {
  Machine machine;
  Instruction instruction = instruction_of(*form_of(Op::v_mfma_f32_16x16x16_bf16));
  instruction.cbsz = 1;
  for (const sim::Handler run : handlers_for(instruction)) {
    REQUIRE(run != nullptr);
    try {
      run(machine.wave, instruction);
      FAIL("no fault");
    } catch (const sim::Fault& fault) {
      CHECK(fault.kind == sim::FaultKind::illegal_instruction);
      CHECK(fault.message.find("v_mfma_f32_16x16x16_bf16 with cbsz:1") != std::string::npos);
    }
  }
  instruction = instruction_of(*form_of(Op::v_mfma_f32_4x4x4_16b_f16));
  instruction.cbsz = 2;
  instruction.abid = 4;
  CHECK_THROWS_AS(sim::matrix_handler(instruction, SimdLevel::baseline)(machine.wave, instruction),
                  sim::Fault);
  instruction = instruction_of(*form_of(Op::v_mfma_f32_16x16x16_bf16));
  instruction.src[2] = 4;  // an SGPR
  CHECK(sim::matrix_handler(instruction, SimdLevel::baseline) == nullptr);
  instruction.op = Op::v_add_f32;
  CHECK(sim::matrix_handler(instruction, SimdLevel::baseline) == nullptr);
}

TEST_CASE("f32 and f64 chains, and what MODE flushes") {
  // f32: small A flushed by MODE, C never. 2^-130 * 2^100 + c, c = 2^-140.
  const Form& form = *form_of(Op::v_mfma_f32_16x16x4_f32);
  for (const bool keep : {false, true})
    for (const sim::Handler run : handlers_for(instruction_of(form))) {
      Machine machine;
      machine.wave.mode = keep ? 0xf0 : 0xc0;
      for (int lane = 0; lane < 64; ++lane) {
        machine.wave.v(row_a - 256u)[lane] = lane < 16 ? 0x00080000u : 0;  // 2^-130
        machine.wave.v(row_b - 256u)[lane] = std::bit_cast<std::uint32_t>(0x1p100f);
        for (std::uint32_t r = 0; r < 4; ++r) machine.wave.v(row_c - 256u + r)[lane] = 0x00000200u;  // 2^-140
      }
      run(machine.wave, instruction_of(form));
      CHECK(std::bit_cast<float>(machine.wave.v(row_d - 256u)[5]) == (keep ? 0x1p-30f : 0x1p-140f));
    }
  // Fused: (1 + 2^-12)^2 - 1 keeps the 2^-24.
  Random random{5};
  for (const Form& f : all_forms()) {
    if (f.a != Element::f32 && f.a != Element::f64) continue;
    const Instruction instruction = instruction_of(f);
    Machine first;
    for (std::uint32_t& word : first.storage) {
      word = static_cast<std::uint32_t>(random.bits());
      if (!random.one_in(20)) word = (word & 0x83ffffffu) | 0x3c000000u;
    }
    std::vector<std::uint32_t> expected;
    for (const sim::Handler run : handlers_for(instruction)) {
      Machine machine;
      std::copy_n(first.wave.vgpr, 64 * rows_in_file, machine.wave.vgpr);
      run(machine.wave, instruction);
      const std::uint32_t* d = machine.wave.v(row_d - 256u);
      if (expected.empty()) expected.assign(d, d + 64 * f.registers_d());
      int wrong = 0;
      for (std::size_t i = 0; i < expected.size(); ++i)
        wrong += f.a == Element::f32 ? !same32(d[i], expected[i]) : d[i] != expected[i];
      INFO(name_of(f));
      CHECK(wrong == 0);
    }
    // The chain itself, k ascending, one rounding each.
    if (f.a == Element::f32)
      for (int lane = 0; lane < 64; ++lane)
        for (int item = 0; item < f.registers_d(); ++item) {
          const Cell at = d_at(f, lane, item);
          float sum =
              std::bit_cast<float>(first.wave.v(row_c - 256u + static_cast<std::uint32_t>(item))[lane]);
          for (int k = 0; k < f.k; ++k) {
            const float x =
                std::bit_cast<float>(first.wave.v(row_a - 256u)[at.row + f.m * (at.block + f.blocks * k)]);
            const float y =
                std::bit_cast<float>(first.wave.v(row_b - 256u)[at.column + f.n * (at.block + f.blocks * k)]);
            sum = std::fmaf(x, y, sum);
          }
          REQUIRE(same32(std::bit_cast<std::uint32_t>(sum),
                         expected[static_cast<std::size_t>(item * 64 + lane)]));
        }
  }
}

TEST_CASE("i8 wraps") {
  const Form& form = *form_of(Op::v_mfma_i32_16x16x32_i8);
  for (const sim::Handler run : handlers_for(instruction_of(form))) {
    Machine machine;
    for (int lane = 0; lane < 64; ++lane)
      for (std::uint32_t r = 0; r < 2; ++r) {
        machine.wave.v(row_a - 256u + r)[lane] = 0x80808080u;
        machine.wave.v(row_b - 256u + r)[lane] = 0x80808080u;
      }
    for (int lane = 0; lane < 64; ++lane)
      for (std::uint32_t r = 0; r < 4; ++r) machine.wave.v(row_c - 256u + r)[lane] = 0x7fffffffu;
    run(machine.wave, instruction_of(form));
    CHECK(machine.wave.v(row_d - 256u)[17] == 0x7fffffffu + 32u * 16384u);
  }
}

TEST_CASE("vector kernels give the model's bits") {
  const std::vector<SimdLevel> levels = levels_here();
  for (const Form& form : all_forms()) {
    if (!accumulates_by_rule(form) || form.sparse) continue;
    for (const SumRule rule : {SumRule::renormalised, SumRule::aligned}) {
      Random random{6};
      const Instruction instruction = instruction_of(form);
      const std::vector<sim::Handler> handlers = handlers_for(instruction, rule);
      const int rounds = form.m == 16 && form.blocks == 1 ? 40 : 4;
      for (const Data data : all_data)
        for (int round = 0; round < rounds * (data == Data::bounds || data == Data::ties ? 3 : 1); ++round) {
          Problem p(form.a, form.b, form.m, form.n, form.k);
          fill(p, data, random);
          std::vector<std::uint32_t> expected;
          for (std::size_t h = 0; h < handlers.size(); ++h) {
            Machine machine;
            place(machine, form, p);
            if (form.a == Element::xf32 && round % 4 == 3) machine.wave.mode = 0;
            handlers[h](machine.wave, instruction);
            const std::uint32_t* d = machine.wave.v(row_d - 256u);
            if (h == 0) {
              expected.assign(d, d + 64 * form.registers_d());
              continue;
            }
            int wrong = 0;
            for (std::size_t i = 0; i < expected.size(); ++i) wrong += !same32(d[i], expected[i]);
            INFO(name_of(form) << " rule " << int(rule) << " data " << int(data) << " level "
                               << int(levels[h - 1]));
            REQUIRE(wrong == 0);
          }
        }
    }
  }
}

TEST_CASE("D may overlap every source") {
  Random random{7};
  for (const Form& form : all_forms()) {
    if (form.sparse) continue;
    Machine first;
    for (std::uint32_t& word : first.storage)
      word = (static_cast<std::uint32_t>(random.bits()) & 0xbfffbfffu) | 0x38003800u;
    for (const std::uint16_t dst :
         {row_a, row_b, row_c, static_cast<std::uint16_t>(row_c + 1), static_cast<std::uint16_t>(row_c - 1),
          static_cast<std::uint16_t>(row_c + 4)}) {
      Instruction apart = instruction_of(form), together = apart;
      together.dst = dst;
      Machine reference;
      std::copy_n(first.wave.vgpr, 64 * rows_in_file, reference.wave.vgpr);
      model_handler(apart, default_sum_rule)(reference.wave, apart);
      for (const sim::Handler run : handlers_for(together)) {
        Machine machine;
        std::copy_n(first.wave.vgpr, 64 * rows_in_file, machine.wave.vgpr);
        run(machine.wave, together);
        const std::uint32_t* d = machine.wave.v(dst - 256u);
        const std::uint32_t* expected = reference.wave.v(row_d - 256u);
        int wrong = 0;
        for (int i = 0; i < 64 * form.registers_d(); ++i)
          wrong += form.a == Element::f64 ? d[i] != expected[i] : !same32(d[i], expected[i]);
        INFO(name_of(form) << " dst " << dst);
        REQUIRE(wrong == 0);
      }
    }
  }
}
