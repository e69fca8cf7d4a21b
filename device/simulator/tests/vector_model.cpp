// SPDX-License-Identifier: MIT
#include "device/simulator/tests/vector_model.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

namespace attest::device::sim::model {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
__extension__ using u128 = unsigned __int128;
__extension__ using i128 = __int128;
using std::string_view;

constexpr u32 ieee_bit = 1u << 9, dx10_bit = 1u << 8, ovfl_bit = 1u << 23;

struct Format {
  int bits, p, emin, emax;
  [[nodiscard]] u64 mask() const { return bits == 64 ? ~u64{0} : (u64{1} << bits) - 1; }
  [[nodiscard]] u64 sign() const { return u64{1} << (bits - 1); }
  [[nodiscard]] u64 infinity() const { return ((u64{1} << (bits - p)) - 1) << (p - 1); }
  [[nodiscard]] u64 quiet() const { return u64{1} << (p - 2); }
  [[nodiscard]] u64 default_nan() const { return sign() | infinity() | quiet(); }
};
constexpr Format f16{16, 11, -14, 15}, f32{32, 24, -126, 127}, f64{64, 53, -1022, 1023};

u64 magnitude(const Format& f, u64 x) {
  return x & (f.sign() - 1);
}
bool negative(const Format& f, u64 x) {
  return (x & f.sign()) != 0;
}
bool is_nan(const Format& f, u64 x) {
  return magnitude(f, x) > f.infinity();
}
bool is_inf(const Format& f, u64 x) {
  return magnitude(f, x) == f.infinity();
}
bool is_zero(const Format& f, u64 x) {
  return magnitude(f, x) == 0;
}
bool is_signalling(const Format& f, u64 x) {
  return is_nan(f, x) && (x & f.quiet()) == 0;
}
bool is_denormal(const Format& f, u64 x) {
  return !is_zero(f, x) && magnitude(f, x) < u64{1} << (f.p - 1);
}
u64 flushed(const Format& f, u64 x) {
  return is_denormal(f, x) ? x & f.sign() : x;
}
i64 exponent_field(const Format& f, u64 x) {
  return static_cast<i64>(magnitude(f, x) >> (f.p - 1));
}

/// x = significand * 2^exponent, finite.
struct Parts {
  bool negative;
  u64 significand;
  i64 exponent;
};
Parts parts(const Format& f, u64 x) {
  const i64 field = exponent_field(f, x);
  const u64 fraction = x & ((u64{1} << (f.p - 1)) - 1);
  if (field == 0) return {negative(f, x), fraction, f.emin - f.p + 1};
  return {negative(f, x), fraction | u64{1} << (f.p - 1), field - 1 + f.emin - f.p + 1};
}

/// Two's complement fixed point, binary point at bit 2400.
class Fixed {
 public:
  static constexpr int words = 76, point = 2400;
  Fixed() = default;
  Fixed(bool is_negative, u128 significand, i64 exponent) {
    // Clamping keeps far-off values non-zero and beyond every format.
    if (exponent < -point) exponent = -point;
    if (exponent > 2200) exponent = 2200;
    const auto at = static_cast<unsigned>(exponent + point);
    const unsigned word = at / 64, shift = at % 64;
    const auto low = static_cast<u64>(significand), high = static_cast<u64>(significand >> 64);
    word_[word] = low << shift;
    word_[word + 1] = high << shift | (shift == 0 ? 0 : low >> (64 - shift));
    word_[word + 2] = shift == 0 ? 0 : high >> (64 - shift);
    if (is_negative) negate();
  }
  [[nodiscard]] bool is_negative() const { return word_[words - 1] >> 63 != 0; }
  [[nodiscard]] bool zero() const {
    for (const u64 w : word_)
      if (w != 0) return false;
    return true;
  }
  void negate() {
    u64 carry = 1;
    for (u64& w : word_) {
      w = ~w + carry;
      carry = carry != 0 && w == 0 ? 1 : 0;
    }
  }
  Fixed& operator+=(const Fixed& o) {
    u64 carry = 0;
    for (int k = 0; k < words; ++k) {
      const u128 sum = u128{word_[k]} + o.word_[k] + carry;
      word_[k] = static_cast<u64>(sum);
      carry = static_cast<u64>(sum >> 64);
    }
    return *this;
  }
  [[nodiscard]] bool bit(int k) const { return k >= 0 && (word_[k / 64] >> (k % 64) & 1) != 0; }
  [[nodiscard]] int top() const {  // of a non-negative, non-zero number
    for (int w = words - 1; w >= 0; --w)
      if (word_[w] != 0) return w * 64 + static_cast<int>(std::bit_width(word_[w])) - 1;
    return -1;
  }
  [[nodiscard]] bool any_below(int k) const {
    for (int w = 0; w < k / 64; ++w)
      if (word_[w] != 0) return true;
    return k % 64 != 0 && (word_[k / 64] & ((u64{1} << (k % 64)) - 1)) != 0;
  }

 private:
  std::array<u64, words> word_{};
};

/// One rounding of x * 2^shift. rounding: 0 nearest even, 1 up, 2 down, 3 to zero.
u64 rounded(const Format& f, Fixed x, u32 rounding, bool zero_negative, int shift = 0) {
  if (x.zero()) return zero_negative ? f.sign() : 0;
  const bool minus = x.is_negative();
  if (minus) x.negate();
  const int top = x.top();
  const int point = Fixed::point - shift;  // value of bit k: 2^(k - point)
  int unit = top - f.p + 1;
  if (unit - point < f.emin - f.p + 1) unit = f.emin - f.p + 1 + point;
  u64 kept = 0;
  for (int k = top; k >= unit; --k) kept = kept << 1 | (x.bit(k) ? 1 : 0);
  const bool half = unit >= 1 && x.bit(unit - 1), sticky = unit >= 2 && x.any_below(unit - 1);
  const bool up = rounding == 0   ? half && (sticky || (kept & 1) != 0)
                  : rounding == 1 ? !minus && (half || sticky)
                  : rounding == 2 ? minus && (half || sticky)
                                  : false;
  if (up) ++kept;
  i64 exponent = unit - point;
  if (kept == u64{1} << f.p) kept >>= 1, ++exponent;
  u64 r;
  if (kept < u64{1} << (f.p - 1)) {
    r = kept;
  } else if (exponent + f.p - 1 > f.emax) {
    const bool to_infinity = rounding == 0 || (rounding == 1 && !minus) || (rounding == 2 && minus);
    r = to_infinity ? f.infinity() : f.infinity() - 1;
  } else {
    r = (static_cast<u64>(exponent + f.p - 1 - f.emin + 1) << (f.p - 1)) |
        (kept & ((u64{1} << (f.p - 1)) - 1));
  }
  return r | (minus ? f.sign() : 0);
}

struct Mode {
  u32 bits = 0;
  u32 rounding = 0;
  [[nodiscard]] bool ieee() const { return (bits & ieee_bit) != 0; }
};

u64 nan_of(const Format& f, const Mode& mode, std::initializer_list<u64> sources) {
  for (const u64 s : sources)
    if (is_nan(f, s)) return mode.ieee() ? s | f.quiet() : s;
  return f.default_nan();
}

Fixed fixed(const Format& f, u64 x) {
  const Parts p = parts(f, x);
  return {p.negative, p.significand, p.exponent};
}
Fixed fixed_product(const Format& f, u64 a, u64 b) {
  const Parts x = parts(f, a), y = parts(f, b);
  return {x.negative != y.negative, u128{x.significand} * y.significand, x.exponent + y.exponent};
}

u64 add(const Format& f, const Mode& mode, u64 a, u64 b) {
  if (is_nan(f, a) || is_nan(f, b)) return nan_of(f, mode, {a, b});
  if (is_inf(f, a) && is_inf(f, b) && a != b) return f.default_nan();
  if (is_inf(f, a)) return a;
  if (is_inf(f, b)) return b;
  Fixed sum = fixed(f, a);
  sum += fixed(f, b);
  const bool both_minus = negative(f, a) && negative(f, b);
  const bool zero_minus =
      is_zero(f, a) && is_zero(f, b) && negative(f, a) == negative(f, b) ? both_minus : mode.rounding == 2;
  return rounded(f, sum, mode.rounding, zero_minus);
}
u64 mul(const Format& f, const Mode& mode, u64 a, u64 b) {
  if (is_nan(f, a) || is_nan(f, b)) return nan_of(f, mode, {a, b});
  const u64 sign = (a ^ b) & f.sign();
  if (is_inf(f, a) || is_inf(f, b))
    return is_zero(f, a) || is_zero(f, b) ? f.default_nan() : sign | f.infinity();
  return rounded(f, fixed_product(f, a, b), mode.rounding, sign != 0);
}
/// Fused, times 2^shift, rounded once to `to`.
u64 fma(const Format& f, const Format& to, const Mode& mode, u64 a, u64 b, u64 c, int shift = 0) {
  if (is_nan(f, a) || is_nan(f, b) || is_nan(f, c)) return nan_of(f, mode, {a, b, c});
  const bool product_minus = negative(f, a) != negative(f, b);
  if (is_inf(f, a) || is_inf(f, b)) {
    if (is_zero(f, a) || is_zero(f, b)) return f.default_nan();
    if (is_inf(f, c) && negative(f, c) != product_minus) return f.default_nan();
    return to.infinity() | (product_minus ? to.sign() : 0);
  }
  if (is_inf(f, c)) return to.infinity() | (negative(f, c) ? to.sign() : 0);
  const bool zeros = (is_zero(f, a) || is_zero(f, b)) && is_zero(f, c);
  const bool zero_minus = zeros && product_minus == negative(f, c) ? product_minus : mode.rounding == 2;
  Fixed sum = fixed_product(f, a, b);
  sum += fixed(f, c);
  return rounded(to, sum, mode.rounding, zero_minus, shift);
}

u64 neg(const Format& f, u64 x) {
  return x ^ f.sign();
}

/// -1, 0, 1; nothing if unordered.
std::optional<int> order(const Format& f, u64 a, u64 b) {
  if (is_nan(f, a) || is_nan(f, b)) return std::nullopt;
  const auto key = [&](u64 x) {
    const auto m = static_cast<i128>(magnitude(f, x));
    return negative(f, x) ? -m : m;
  };
  return key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0;
}
u64 extreme(const Format& f, const Mode& mode, bool want_max, u64 a, u64 b) {
  if (mode.ieee() && is_signalling(f, a)) return a | f.quiet();
  if (mode.ieee() && is_signalling(f, b)) return b | f.quiet();
  if (is_nan(f, a)) return b;
  if (is_nan(f, b)) return a;
  if (is_zero(f, a) && is_zero(f, b)) return want_max == negative(f, a) ? b : a;
  return (*order(f, a, b) > 0) == want_max ? a : b;
}
u64 median(const Format& f, const Mode& mode, u64 a, u64 b, u64 c) {
  if (is_nan(f, a) || is_nan(f, b) || is_nan(f, c))
    return extreme(f, mode, false, extreme(f, mode, false, a, b), c);
  const u64 largest = extreme(f, mode, true, extreme(f, mode, true, a, b), c);
  if (*order(f, largest, a) == 0) return extreme(f, mode, true, b, c);
  if (*order(f, largest, b) == 0) return extreme(f, mode, true, a, c);
  return extreme(f, mode, true, a, b);
}

/// t trunc, f floor, c ceil, n nearest even
u64 integral(const Format& f, const Mode& mode, char how, u64 x) {
  if (is_nan(f, x)) return nan_of(f, mode, {x});
  if (is_inf(f, x)) return x;
  const Parts p = parts(f, x);
  if (p.exponent >= 0) return x;
  const i64 down = -p.exponent;
  u64 whole = down >= 64 ? 0 : p.significand >> down;
  const u64 rest = down >= 64 ? p.significand : p.significand - (whole << down);
  const bool some = rest != 0;
  const bool over_half = down < 64 && rest > u64{1} << (down - 1),
             half = down < 64 && rest == u64{1} << (down - 1);
  if ((how == 'f' && p.negative && some) || (how == 'c' && !p.negative && some) ||
      (how == 'n' && (over_half || (half && (whole & 1) != 0))))
    ++whole;
  return rounded(f, Fixed(p.negative, whole, 0), 0, p.negative);
}

i128 to_integer(const Format& f, u64 x, i128 low, i128 high) {  // towards zero, saturating, NaN 0
  if (is_nan(f, x)) return 0;
  if (is_inf(f, x)) return negative(f, x) ? low : high;
  const Parts p = parts(f, x);
  i128 v;
  if (p.exponent >= 64)
    v = p.significand == 0 ? 0 : i128{1} << 100;
  else if (p.exponent >= 0)
    v = static_cast<i128>(p.significand) << p.exponent;
  else
    v = -p.exponent >= 64 ? 0 : static_cast<i128>(p.significand >> -p.exponent);
  if (p.negative) v = -v;
  return v < low ? low : v > high ? high : v;
}
u64 from_integer(const Format& f, u32 rounding, i128 v) {
  return rounded(f, Fixed(v < 0, v < 0 ? static_cast<u128>(-v) : static_cast<u128>(v), 0), rounding, false);
}
/// Also narrows and widens NaNs: the payload keeps its leading bits.
u64 convert(const Format& from, const Format& to, const Mode& mode, u64 x, bool quiets = true) {
  const u64 sign = negative(from, x) ? to.sign() : 0;
  if (is_nan(from, x)) {
    u64 fraction = x & ((u64{1} << (from.p - 1)) - 1);
    if (quiets && mode.ieee()) fraction |= from.quiet();
    fraction = from.p > to.p ? fraction >> (from.p - to.p) : fraction << (to.p - from.p);
    if (fraction == 0) fraction = to.quiet();
    return sign | to.infinity() | fraction;
  }
  if (is_inf(from, x)) return sign | to.infinity();
  return rounded(to, fixed(from, x), mode.rounding, sign != 0);
}
u64 stop_overflow(const Mode& mode, u64 half, bool from_finite) {
  if ((mode.bits & ovfl_bit) != 0 && from_finite && magnitude(f16, half) == f16.infinity())
    return (half & 0x8000) | 0x7bff;
  return half;
}

u64 fract(const Format& f, const Mode& mode, u64 x) {
  if (is_nan(f, x) || is_inf(f, x)) return nan_of(f, mode, {x});
  Mode nearest = mode;
  nearest.rounding = 0;
  const u64 r = add(f, nearest, x, neg(f, integral(f, mode, 'f', x)));
  const u64 below_one = (static_cast<u64>(-f.emin) << (f.p - 1)) | ((u64{1} << (f.p - 1)) - 1);
  return magnitude(f, r) > below_one ? below_one : r;
}
u64 frexp_mantissa(const Format& f, const Mode& mode, u64 x) {
  if (is_nan(f, x)) return nan_of(f, mode, {x});
  if (is_inf(f, x) || is_zero(f, x)) return x;
  Parts p = parts(f, x);
  while (p.significand < u64{1} << (f.p - 1)) p.significand <<= 1;
  return rounded(f, Fixed(p.negative, p.significand, -f.p), 0, false);
}
i64 frexp_exponent(const Format& f, u64 x) {
  if (is_nan(f, x) || is_inf(f, x) || is_zero(f, x)) return 0;
  const Parts p = parts(f, x);
  return p.exponent + std::bit_width(p.significand);
}
u64 ldexp(const Format& f, const Mode& mode, u64 x, i64 k) {
  if (is_nan(f, x)) return nan_of(f, mode, {x});
  if (is_inf(f, x) || is_zero(f, x)) return x;
  const Parts p = parts(f, x);
  return rounded(f, Fixed(p.negative, p.significand, p.exponent + k), mode.rounding, p.negative);
}

bool less_magnitude_scaled(const Format& f, u64 a, u64 b, int shift) {  // |a| < |b| * 2^shift, finite
  const Parts x = parts(f, a), y = parts(f, b);
  Fixed difference(false, x.significand, x.exponent);
  difference += Fixed(true, y.significand, y.exponent + shift);
  return difference.is_negative();
}
struct Scaled {
  u64 value;
  bool flag;
};
Scaled div_scale(const Format& f, const Mode& mode, u64 s0, u64 s1, u64 s2) {
  const int by = f.bits == 32 ? 64 : 128, gap = f.bits == 32 ? 96 : 768, small = f.bits == 32 ? 23 : 53;
  const u64 quiet_nan = f.infinity() | f.quiet();
  const auto up = [&] { return ldexp(f, mode, s0, by); };
  const bool finite1 = !is_nan(f, s1) && !is_inf(f, s1), finite2 = !is_nan(f, s2) && !is_inf(f, s2);
  if (is_zero(f, s1) || is_zero(f, s2)) return {quiet_nan, false};
  if (exponent_field(f, s2) - exponent_field(f, s1) >= gap) return {s0 == s1 ? up() : s0, true};
  if (is_denormal(f, s1)) return {up(), false};
  const u64 huge = static_cast<u64>(2 * f.emax - 1) << (f.p - 1);  // 2^(emax - 1) = 1 / smallest normal
  const bool reciprocal_tiny = finite1 && magnitude(f, s1) > huge;
  const bool quotient_tiny = is_nan(f, s1) || is_nan(f, s2) ? false
                             : is_inf(f, s1)                ? !is_inf(f, s2)
                             : finite2                      ? less_magnitude_scaled(f, s2, s1, f.emin)
                                                            : false;
  if (reciprocal_tiny && quotient_tiny) return {s0 == s1 ? ldexp(f, mode, s0, -by) : s0, true};
  if (reciprocal_tiny) return {ldexp(f, mode, s0, -by), false};
  if (quotient_tiny) return {s0 == s2 ? up() : s0, true};
  if (exponent_field(f, s2) <= small) return {up(), false};
  return {s0, false};
}
u64 div_fixup(const Format& f, u64 q, u64 d, u64 n) {
  const u64 sign = (d ^ n) & f.sign();
  if (is_nan(f, n)) return n | f.quiet();
  if (is_nan(f, d)) return d | f.quiet();
  if ((is_zero(f, d) && is_zero(f, n)) || (is_inf(f, d) && is_inf(f, n))) return f.default_nan();
  if (is_zero(f, d) || is_inf(f, n)) return sign | f.infinity();
  if (is_inf(f, d) || is_zero(f, n)) return sign;
  if (f.bits == 32 && exponent_field(f, n) - exponent_field(f, d) < -150) return sign;
  if (f.bits == 64 && exponent_field(f, n) - exponent_field(f, d) < -1075) return sign;
  if (is_nan(f, q) && f.bits != 16) return sign | f.infinity();
  return magnitude(f, q) | sign;
}

bool class_matches(const Format& f, u64 x, u64 wanted) {
  int k;
  if (is_nan(f, x))
    k = is_signalling(f, x) ? 0 : 1;
  else if (is_inf(f, x))
    k = negative(f, x) ? 2 : 9;
  else if (is_zero(f, x))
    k = negative(f, x) ? 5 : 6;
  else if (is_denormal(f, x))
    k = negative(f, x) ? 4 : 7;
  else
    k = negative(f, x) ? 3 : 8;
  return (wanted >> k & 1) != 0;
}

i64 sext(u64 x, int width) {
  return static_cast<i64>(x << (64 - width)) >> (64 - width);
}
u64 zext(u64 x, int width) {
  return width == 64 ? x : x & ((u64{1} << width) - 1);
}
i128 clamp_to(i128 v, i128 low, i128 high) {
  return v < low ? low : v > high ? high : v;
}

bool eats(string_view& s, string_view prefix) {
  if (!s.starts_with(prefix)) return false;
  s.remove_prefix(prefix.size());
  return true;
}
const Format* format_of(string_view type) {
  return type == "f16" ? &f16 : type == "f32" ? &f32 : type == "f64" ? &f64 : nullptr;
}

bool compare_holds(string_view predicate, int order_or_2) {  // 2: unordered
  const bool lt = order_or_2 == -1, eq = order_or_2 == 0, gt = order_or_2 == 1, un = order_or_2 == 2;
  if (predicate == "f") return false;
  if (predicate == "t" || predicate == "tru") return true;
  if (predicate == "lt") return lt;
  if (predicate == "eq") return eq;
  if (predicate == "le") return lt || eq;
  if (predicate == "gt") return gt;
  if (predicate == "ge") return gt || eq;
  if (predicate == "lg") return lt || gt;
  if (predicate == "ne") return !eq;
  if (predicate == "o") return !un;
  if (predicate == "u") return un;
  if (predicate == "nge") return lt || un;
  if (predicate == "nlg") return eq || un;
  if (predicate == "ngt") return lt || eq || un;
  if (predicate == "nle") return gt || un;
  if (predicate == "neq") return lt || gt || un;
  return gt || eq || un;  // nlt
}

u32 sad_bytes(u64 a, u64 b, u64 c, bool masked) {
  i64 sum = static_cast<i64>(c);
  for (int k = 0; k < 4; ++k) {
    const int x = static_cast<int>(a >> (8 * k) & 0xff), y = static_cast<int>(b >> (8 * k) & 0xff);
    if (!(masked && y == 0)) sum += std::abs(x - y);
  }
  return static_cast<u32>(sum);
}

/// What one lane computes.
struct Lane {
  unsigned index = 0;
  Mode mode;
  u64 s[3] = {};
  std::array<u32, 4> wide_addend{};  ///< of v_mqsad_u32_u8
  u32 old = 0;                       ///< the destination before
  bool mask_in = false;
  bool clamp = false;
};
struct Outcome {
  u64 value = 0;
  std::array<u32, 4> wide{};
  bool mask_out = false;
};

/// Scalar 16- and 32-bit float operations that also exist packed. Nothing: not one of them.
std::optional<u64> float_operation(string_view op, const Format& f, const Mode& m, u64 a, u64 b, u64 c) {
  if (op == "add") return add(f, m, a, b);
  if (op == "sub") return add(f, m, a, is_nan(f, b) ? b : neg(f, b));
  if (op == "subrev") {
    if (is_nan(f, a) || is_nan(f, b)) return nan_of(f, m, {a, b});
    return add(f, m, b, neg(f, a));
  }
  if (op == "mul") return mul(f, m, a, b);
  if (op == "mul_legacy") {
    if (is_zero(f, a) || is_zero(f, b)) return 0;
    return mul(f, m, a, b);
  }
  if (op == "fma" || op == "fmac" || op == "fmamk" || op == "fmaak" || op == "fma_legacy")
    return fma(f, f, m, a, b, c);
  if (op == "mad" || op == "mac" || op == "madmk" || op == "madak" || op == "mad_legacy") {
    if (is_nan(f, a) || is_nan(f, b) || is_nan(f, c)) return nan_of(f, m, {a, b, c});
    const bool finite = !is_inf(f, a) && !is_inf(f, b);
    const u64 product = stop_overflow(m, mul(f, m, a, b), finite);
    return is_nan(f, product) ? f.default_nan() : add(f, m, product, c);
  }
  if (op == "min" || op == "max") return extreme(f, m, op == "max", a, b);
  if (op == "min3" || op == "max3") return extreme(f, m, op == "max3", extreme(f, m, op == "max3", a, b), c);
  if (op == "med3") return median(f, m, a, b, c);
  if (op == "trunc") return integral(f, m, 't', a);
  if (op == "floor") return integral(f, m, 'f', a);
  if (op == "ceil") return integral(f, m, 'c', a);
  if (op == "rndne") return integral(f, m, 'n', a);
  if (op == "fract") return fract(f, m, a);
  if (op == "frexp_mant") return frexp_mantissa(f, m, a);
  if (op == "div_fixup" || op == "div_fixup_legacy") return div_fixup(f, a, b, c);
  if (op == "ldexp") return ldexp(f, m, a, f.bits == 16 ? sext(b, 16) : sext(b, 32));
  return std::nullopt;
}

std::optional<u64> integer_operation(string_view op, int width, bool is_signed, bool clamp, u64 ra, u64 rb,
                                     u64 rc) {
  const auto widen = [&](u64 x) -> i128 {
    return is_signed ? i128{sext(x, width)} : static_cast<i128>(zext(x, width));
  };
  const i128 a = widen(ra), b = widen(rb), c = widen(rc);
  const i128 low = is_signed ? -(i128{1} << (width - 1)) : 0;
  const i128 high = is_signed ? (i128{1} << (width - 1)) - 1 : (i128{1} << width) - 1;
  const auto out = [&](i128 v) { return zext(static_cast<u64>(clamp ? clamp_to(v, low, high) : v), width); };
  const auto plain = [&](i128 v) { return zext(static_cast<u64>(v), width); };
  if (op == "add") return out(a + b);
  if (op == "sub") return out(a - b);
  if (op == "subrev") return out(b - a);
  if (op == "mad" || op == "mad_legacy") return out(a * b + c);
  if (op == "mul_lo") return plain(a * b);
  if (op == "mul_hi") return plain((a * b) >> width);
  if (op == "min") return plain(a < b ? a : b);
  if (op == "max") return plain(a > b ? a : b);
  if (op == "min3") return plain(std::min(std::min(a, b), c));
  if (op == "max3") return plain(std::max(std::max(a, b), c));
  if (op == "med3") return plain(std::max(std::min(a, b), std::min(std::max(a, b), c)));
  if (op == "lshlrev") return plain(static_cast<i128>(zext(rb, width)) << (ra & static_cast<u64>(width - 1)));
  if (op == "lshrrev") return plain(static_cast<i128>(zext(rb, width)) >> (ra & static_cast<u64>(width - 1)));
  if (op == "ashrrev") return plain(b >> (ra & static_cast<u64>(width - 1)));
  if (op == "add3") return plain(a + b + c);
  if (op == "xad") return plain(static_cast<i128>(ra ^ rb) + c);
  return std::nullopt;
}

std::optional<Outcome> named_operation(string_view n, const Lane& lane) {
  const u64 a = lane.s[0], b = lane.s[1], c = lane.s[2];
  const auto a32 = static_cast<u32>(a), b32 = static_cast<u32>(b), c32 = static_cast<u32>(c);
  const Mode& m = lane.mode;
  const auto value = [](u64 v) { return Outcome{v, {}, false}; };
  const auto saturate_u32 = [&](i128 v) {
    return static_cast<u32>(lane.clamp ? clamp_to(v, 0, 0xffffffff) : v);
  };
  const auto saturate_i32 = [&](i128 v) {
    return static_cast<u32>(lane.clamp ? clamp_to(v, -0x80000000ll, 0x7fffffff) : v);
  };

  // Bits.
  if (n == "mov_b32" || n == "mov_b64" || n == "accvgpr_mov_b32" || n == "accvgpr_read_b32" ||
      n == "accvgpr_write_b32")
    return value(a);
  if (n == "not_b32") return value(~a32);
  if (n == "and_b32") return value(a & b);
  if (n == "or_b32") return value(a | b);
  if (n == "xor_b32") return value(a ^ b);
  if (n == "xnor_b32") return value(static_cast<u32>(~(a ^ b)));
  if (n == "or3_b32") return value(a | b | c);
  if (n == "and_or_b32") return value((a & b) | c);
  if (n == "bfi_b32") return value((a32 & b32) | (~a32 & c32));
  if (n == "cndmask_b32") return value(lane.mask_in ? b : a);
  if (n == "bfrev_b32") {
    u32 r = 0;
    for (int k = 0; k < 32; ++k) r |= (a32 >> k & 1) << (31 - k);
    return value(r);
  }
  if (n == "ffbh_u32") return value(a32 == 0 ? ~u32{0} : static_cast<u32>(std::countl_zero(a32)));
  if (n == "ffbl_b32") return value(a32 == 0 ? ~u32{0} : static_cast<u32>(std::countr_zero(a32)));
  if (n == "ffbh_i32") {
    for (u32 k = 1; k < 32; ++k)
      if ((a32 >> (31 - k) & 1) != a32 >> 31) return value(k);
    return value(~u32{0});
  }
  if (n == "bcnt_u32_b32") return value(static_cast<u32>(std::popcount(a32)) + b32);
  if (n == "mbcnt_lo_u32_b32" || n == "mbcnt_hi_u32_b32") {
    const unsigned base = n[6] == 'l' ? 0 : 32;
    u32 r = b32;
    for (unsigned k = 0; k < 32; ++k)
      if (k + base < lane.index) r += a32 >> k & 1;
    return value(r);
  }
  if (n == "bfm_b32") return value(static_cast<u32>(((u64{1} << (a & 31)) - 1) << (b & 31)));
  if (n == "bfe_u32" || n == "bfe_i32") {
    const int offset = static_cast<int>(b & 31), width = static_cast<int>(c & 31);
    if (width == 0) return value(0);
    const bool is_signed = n == "bfe_i32";
    const u64 source = is_signed ? static_cast<u64>(sext(a, 32)) : a;
    const u64 field = zext(source >> offset, width);
    return value(static_cast<u32>(is_signed ? static_cast<u64>(sext(field, width)) : field));
  }
  if (n == "perm_b32") {
    u32 r = 0;
    for (int k = 0; k < 4; ++k) {
      const u32 sel = c32 >> (8 * k) & 0xff;
      const u64 pool = a << 32 | b32;
      u32 byte;
      if (sel < 8)
        byte = static_cast<u32>(pool >> (8 * sel) & 0xff);
      else if (sel < 12)
        byte = (pool >> (16 * (sel - 8) + 15) & 1) != 0 ? 0xff : 0;
      else
        byte = sel == 12 ? 0 : 0xff;
      r |= byte << (8 * k);
    }
    return value(r);
  }
  if (n == "alignbit_b32") return value(static_cast<u32>((a << 32 | b32) >> (c & 31)));
  if (n == "alignbyte_b32") return value(static_cast<u32>((a << 32 | b32) >> (8 * (c & 3))));
  if (n == "lshl_add_u32") return value(static_cast<u32>((a32 << (b & 31)) + c32));
  if (n == "add_lshl_u32") return value((a32 + b32) << (c & 31));
  if (n == "lshl_or_b32") return value((a32 << (b & 31)) | c32);
  if (n == "lshl_add_u64") return value(((b & 7) <= 4 ? a << (b & 7) : a) + c);
  if (n == "pk_mov_b32") return value((a & 0xffffffff) | b << 32);
  if (n == "pack_b32_f16") return value((a & 0xffff) | (b & 0xffff) << 16);
  if (n == "sat_pk_u8_i16") {
    const auto sat = [](u64 x) { return static_cast<u64>(clamp_to(sext(x, 16), 0, 255)); };
    return value(sat(a) | sat(a >> 16) << 8);
  }
  if (n == "lerp_u8") {
    u32 r = 0;
    for (int k = 0; k < 32; k += 8) r |= (((a32 >> k & 0xff) + (b32 >> k & 0xff) + (c32 >> k & 1)) / 2) << k;
    return value(r);
  }

  // Carries.
  const auto carrying = [&](i128 v) {
    Outcome o = value(static_cast<u32>(v));
    o.mask_out = v < 0 || v > 0xffffffffll;
    return o;
  };
  if (n == "add_co_u32") return carrying(i128{a32} + b32);
  if (n == "sub_co_u32") return carrying(i128{a32} - b32);
  if (n == "subrev_co_u32") return carrying(i128{b32} - a32);
  if (n == "addc_co_u32") return carrying(i128{a32} + b32 + (lane.mask_in ? 1 : 0));
  if (n == "subb_co_u32") return carrying(i128{a32} - b32 - (lane.mask_in ? 1 : 0));
  if (n == "subbrev_co_u32") return carrying(i128{b32} - a32 - (lane.mask_in ? 1 : 0));

  // Products.
  if (n == "mul_u32_u24") return value(static_cast<u32>(zext(a, 24) * zext(b, 24)));
  if (n == "mul_hi_u32_u24") return value(zext(a, 24) * zext(b, 24) >> 32);
  if (n == "mul_i32_i24") return value(static_cast<u32>(sext(a, 24) * sext(b, 24)));
  if (n == "mul_hi_i32_i24") return value(static_cast<u32>((sext(a, 24) * sext(b, 24)) >> 32));
  if (n == "mad_u32_u24") return value(saturate_u32(i128{zext(a, 24)} * zext(b, 24) + c32));
  if (n == "mad_i32_i24") return value(saturate_i32(i128{sext(a, 24)} * sext(b, 24) + sext(c, 32)));
  if (n == "mad_u32_u16") return value(saturate_u32(i128{zext(a, 16)} * zext(b, 16) + c32));
  if (n == "mad_i32_i16") return value(saturate_i32(i128{sext(a, 16)} * sext(b, 16) + sext(c, 32)));
  if (n == "mad_u64_u32") {
    const u128 sum = u128{a32} * b32 + c;
    Outcome o = value(static_cast<u64>(sum));
    o.mask_out = sum >> 64 != 0;
    return o;
  }
  if (n == "mad_i64_i32") {
    const i128 sum = i128{sext(a, 32)} * sext(b, 32) + static_cast<i64>(c);
    Outcome o = value(static_cast<u64>(sum));
    o.mask_out = (sum >> 64 & 1) != 0;
    return o;
  }
  for (const int width : {16, 8, 4})
    for (const bool is_signed : {true, false})
      for (const bool accumulating : {true, false}) {
        const std::string name = "dot" + std::to_string(32 / width) + (accumulating ? "c" : "") +
                                 (is_signed ? "_i32_i" : "_u32_u") + std::to_string(width);
        if (n != name) continue;
        i128 sum = is_signed ? i128{sext(c, 32)} : i128{c32};
        for (int k = 0; k < 32; k += width)
          sum += is_signed ? i128{sext(a >> k, width)} * sext(b >> k, width)
                           : i128{zext(a >> k, width)} * static_cast<i128>(zext(b >> k, width));
        return value(is_signed ? saturate_i32(sum) : saturate_u32(sum));
      }
  if (n == "dot2_f32_f16" || n == "dot2c_f32_f16") {
    Mode keep = m;
    keep.rounding = 0;
    const auto half = [&](u64 x) { return convert(f16, f32, keep, x & 0xffff, false); };
    u64 r = fma(f32, f32, keep, half(a), half(b), flushed(f32, c));
    r = fma(f32, f32, keep, half(a >> 16), half(b >> 16), flushed(f32, r));
    return value(flushed(f32, r));
  }

  // Byte differences.
  if (n == "sad_u8") return value(saturate_u32(i128{sad_bytes(a, b, 0, false)} + c32));
  if (n == "msad_u8") return value(saturate_u32(i128{sad_bytes(a, b, 0, true)} + c32));
  if (n == "sad_hi_u8") return value(saturate_u32((i128{sad_bytes(a, b, 0, false)} << 16) + c32));
  if (n == "sad_u16") {
    const auto difference = [](u64 x, u64 y) {
      return std::abs(static_cast<i64>(x & 0xffff) - static_cast<i64>(y & 0xffff));
    };
    return value(saturate_u32(i128{difference(a, b)} + difference(a >> 16, b >> 16) + c32));
  }
  if (n == "sad_u32") return value(saturate_u32(i128{std::abs(i64{a32} - i64{b32})} + c32));
  if (n == "qsad_pk_u16_u8" || n == "mqsad_pk_u16_u8") {
    u64 r = 0;
    for (int k = 0; k < 4; ++k) {
      u32 sum = sad_bytes(a >> (8 * k), b, c >> (16 * k) & 0xffff, n[0] == 'm');
      if (lane.clamp && sum > 0xffff) sum = 0xffff;
      r |= u64{sum & 0xffff} << (16 * k);
    }
    return value(r);
  }
  if (n == "mqsad_u32_u8") {
    Outcome o;
    for (unsigned k = 0; k < 4; ++k)
      o.wide[k] = saturate_u32(i128{sad_bytes(a >> (8 * k), b, 0, true)} + lane.wide_addend[k]);
    return o;
  }

  // Conversions.
  const Mode nearest{m.bits, 0};
  if (n == "cvt_f32_i32") return value(from_integer(f32, m.rounding, sext(a, 32)));
  if (n == "cvt_f32_u32") return value(from_integer(f32, m.rounding, i128{a32}));
  if (n == "cvt_f64_i32") return value(from_integer(f64, 0, sext(a, 32)));
  if (n == "cvt_f64_u32") return value(from_integer(f64, 0, i128{a32}));
  if (n == "cvt_i32_f32") return value(static_cast<u32>(to_integer(f32, a, -0x80000000ll, 0x7fffffff)));
  if (n == "cvt_u32_f32") return value(static_cast<u32>(to_integer(f32, a, 0, 0xffffffff)));
  if (n == "cvt_i32_f64") return value(static_cast<u32>(to_integer(f64, a, -0x80000000ll, 0x7fffffff)));
  if (n == "cvt_u32_f64") return value(static_cast<u32>(to_integer(f64, a, 0, 0xffffffff)));
  if (n == "cvt_flr_i32_f32")
    return value(static_cast<u32>(to_integer(f32, integral(f32, m, 'f', a), -0x80000000ll, 0x7fffffff)));
  if (n == "cvt_rpi_i32_f32") {
    if (is_nan(f32, a)) return value(0);
    if (is_inf(f32, a)) return value(negative(f32, a) ? 0x80000000u : 0x7fffffffu);
    Fixed sum = fixed(f32, a);
    sum += Fixed(false, 1, -1);
    const u64 in_double = rounded(f64, sum, 2, false);  // rounding down does not change the floor
    return value(
        static_cast<u32>(to_integer(f64, integral(f64, m, 'f', in_double), -0x80000000ll, 0x7fffffff)));
  }
  if (n == "cvt_off_f32_i4")
    return value(rounded(f32, Fixed(sext(a, 4) < 0, static_cast<u128>(std::abs(sext(a, 4))), -4), 0, false));
  for (int k = 0; k < 4; ++k)
    if (n == "cvt_f32_ubyte" + std::to_string(k))
      return value(from_integer(f32, 0, static_cast<i128>(a >> (8 * k) & 0xff)));
  if (n == "cvt_f16_f32") {
    const bool finite = !is_nan(f32, a) && !is_inf(f32, a);
    return value(stop_overflow(m, convert(f32, f16, m, a), finite));
  }
  if (n == "cvt_f32_f16") return value(convert(f16, f32, nearest, a & 0xffff));
  if (n == "cvt_f64_f32") return value(convert(f32, f64, nearest, a));
  if (n == "cvt_f32_f64") return value(convert(f64, f32, m, a));
  if (n == "cvt_f16_u16")
    return value(stop_overflow(m, from_integer(f16, m.rounding, static_cast<i128>(zext(a, 16))), true));
  if (n == "cvt_f16_i16") return value(stop_overflow(m, from_integer(f16, m.rounding, sext(a, 16)), true));
  if (n == "cvt_u16_f16") return value(static_cast<u64>(to_integer(f16, a & 0xffff, 0, 0xffff)));
  if (n == "cvt_i16_f16")
    return value(zext(static_cast<u64>(to_integer(f16, a & 0xffff, -0x8000, 0x7fff)), 16));
  if (n == "cvt_pkrtz_f16_f32") {
    const Mode zero{m.bits, 3};
    return value(convert(f32, f16, zero, a) | convert(f32, f16, zero, b) << 16);
  }
  if (n == "cvt_pk_u16_u32") return value(std::min<u64>(a32, 0xffff) | std::min<u64>(b32, 0xffff) << 16);
  if (n == "cvt_pk_i16_i32") {
    const auto sat = [](u64 x) { return zext(static_cast<u64>(clamp_to(sext(x, 32), -0x8000, 0x7fff)), 16); };
    return value(sat(a) | sat(b) << 16);
  }
  {
    const auto norm = [&](const Format& f, u64 x, bool is_signed) -> u64 {
      if (is_nan(f, x)) return 0;
      const long double scale = is_signed ? 32767 : 65535;
      const u64 bits32 = f.bits == 16 ? convert(f16, f32, nearest, x, false) : x;
      long double v = std::bit_cast<float>(static_cast<u32>(bits32));
      v = std::fmin(1.0L, std::fmax(is_signed ? -1.0L : 0.0L, v)) * scale;
      const long double down = std::floor(v), part = v - down;
      const bool up = part > 0.5L || (part == 0.5L && std::fmod(down, 2.0L) != 0);
      return zext(static_cast<u64>(static_cast<i64>(down) + (up ? 1 : 0)), 16);
    };
    if (n == "cvt_pknorm_i16_f32") return value(norm(f32, a, true) | norm(f32, b, true) << 16);
    if (n == "cvt_pknorm_u16_f32") return value(norm(f32, a, false) | norm(f32, b, false) << 16);
    if (n == "cvt_pknorm_i16_f16")
      return value(norm(f16, a & 0xffff, true) | norm(f16, b & 0xffff, true) << 16);
    if (n == "cvt_pknorm_u16_f16")
      return value(norm(f16, a & 0xffff, false) | norm(f16, b & 0xffff, false) << 16);
    if (n == "cvt_norm_i16_f16") return value(norm(f16, a & 0xffff, true));
    if (n == "cvt_norm_u16_f16") return value(norm(f16, a & 0xffff, false));
  }
  if (n == "cvt_pk_u8_f32" || n == "cvt_pkaccum_u8_f32") {
    const u32 at = 8 * (b32 & 3);
    const auto byte = static_cast<u32>(to_integer(f32, a, 0, 255));
    const u32 into = n == "cvt_pk_u8_f32" ? c32 : lane.old;
    return value((into & ~(0xffu << at)) | byte << at);
  }
  const auto as_float = [](u64 x) { return std::bit_cast<float>(static_cast<u32>(x)); };
  const auto float_bits = [](float x) -> u64 {
    return std::isnan(x) ? f32.default_nan() : std::bit_cast<u32>(x);
  };
  if (n == "cvt_f32_fp8" || n == "cvt_f32_bf8")
    return value(float_bits(fp8_value(static_cast<std::uint8_t>(a), n[8] == 'b')));
  if (n == "cvt_pk_f32_fp8" || n == "cvt_pk_f32_bf8") {
    const bool e5m2 = n[11] == 'b';
    return value(float_bits(fp8_value(static_cast<std::uint8_t>(a), e5m2)) |
                 float_bits(fp8_value(static_cast<std::uint8_t>(a >> 8), e5m2)) << 32);
  }
  if (n == "cvt_pk_fp8_f32" || n == "cvt_pk_bf8_f32") {
    const bool e5m2 = n[7] == 'b', saturate = (m.bits & ovfl_bit) != 0;
    return value(fp8_nearest(as_float(a), e5m2, saturate) | u64{fp8_nearest(as_float(b), e5m2, saturate)}
                                                                << 8);
  }
  if (n == "cvt_sr_fp8_f32" || n == "cvt_sr_bf8_f32") {
    // floor(|x| / unit + fraction) units, unit being the last place of the format at |x|
    const bool e5m2 = n[7] == 'b', saturate = (m.bits & ovfl_bit) != 0;
    const int precision = e5m2 ? 2 : 3, lowest = e5m2 ? -15 : -7, drop = 23 - precision;
    const float x = as_float(a);
    if (std::isnan(x)) return value(0x80);
    const u64 sign = std::signbit(x) ? 0x80 : 0;
    const u64 overflow = saturate ? sign | 0x7f : 0x80;
    if (std::isinf(x)) return value(overflow);
    const int exponent = x == 0 || std::ilogb(x) < lowest ? lowest : std::ilogb(x);
    // the machine aligns to 23 bits below the exponent first
    const long double aligned =
        std::floor(std::scalbn(static_cast<long double>(std::fabs(x)), 23 - exponent));
    const bool f32_denormal = std::fabs(x) < std::numeric_limits<float>::min();
    const auto sum = static_cast<u64>(f32_denormal ? 0 : aligned) + (b32 >> (32 - drop));
    const u64 units = sum >> drop;
    if (units == 0) return value(0);
    const double result = std::scalbn(static_cast<double>(units), exponent - precision);
    const double largest = e5m2 ? 57344 : 240;
    if (result > largest) return value(overflow);
    return value(sign | fp8_nearest(static_cast<float>(result), e5m2, false));
  }

  // Odd ones.
  if (n == "frexp_exp_i32_f32") return value(static_cast<u32>(frexp_exponent(f32, a)));
  if (n == "frexp_exp_i32_f64") return value(static_cast<u32>(frexp_exponent(f64, a)));
  if (n == "frexp_exp_i16_f16") return value(zext(static_cast<u64>(frexp_exponent(f16, a & 0xffff)), 16));
  if (n == "div_scale_f32" || n == "div_scale_f64") {
    const Scaled r = div_scale(n == "div_scale_f32" ? f32 : f64, m, a, b, c);
    Outcome o = value(r.value);
    o.mask_out = r.flag;
    return o;
  }
  if (n == "div_fmas_f32" || n == "div_fmas_f64") {
    const Format& f = n == "div_fmas_f32" ? f32 : f64;
    const int by = n == "div_fmas_f32" ? 64 : 128;
    const int shift = !lane.mask_in ? 0 : exponent_field(f, c) > f.emax ? by : -by;
    // f64: an overflow before the scaling is not undone.
    const u64 unscaled = fma(f, f, m, a, b, c);
    if (f.bits == 64 && shift != 0 && magnitude(f, unscaled) >= f.infinity() - 1)
      return value(ldexp(f, m, unscaled, shift));
    return value(fma(f, f, m, a, b, c, shift));
  }
  if (n == "fma_mix_f32") return value(fma(f32, f32, m, a, b, c));
  if (n == "fma_mixlo_f16" || n == "fma_mixhi_f16") {
    const bool special = is_nan(f32, a) || is_nan(f32, b) || is_nan(f32, c);
    const u64 as_f32 = fma(f32, f32, m, a, b, c);
    if (special || is_nan(f32, as_f32)) return value(convert(f32, f16, Mode{0, 0}, as_f32, false));
    const bool infinite = is_inf(f32, a) || is_inf(f32, b) || is_inf(f32, c);
    return value(stop_overflow(m, fma(f32, f16, m, a, b, c), !infinite));
  }
  if (n == "trig_preop_f64") {
    // 2/pi to 1201 bits by Machin's formula in fixed point, kept as bits
    static const std::vector<bool> digits = [] {
      // pi / 2 from arctan(1/5), arctan(1/239), then division by long division, base 2^32, 1300 fractional
      // bits
      constexpr int n_words = 48;
      using Number = std::vector<u32>;  // most significant word first, word 0 the integer part
      const auto divide = [](const Number& x, u32 by) {
        Number q(x.size());
        u64 rest = 0;
        for (std::size_t k = 0; k < x.size(); ++k) {
          const u64 part = rest << 32 | x[k];
          q[k] = static_cast<u32>(part / by);
          rest = part % by;
        }
        return q;
      };
      const auto add_to = [](Number& x, const Number& y, bool subtract) {
        i64 carry = 0;
        for (std::size_t k = x.size(); k-- > 0;) {
          const i64 v = i64{x[k]} + (subtract ? -i64{y[k]} : i64{y[k]}) + carry;
          x[k] = static_cast<u32>(v);
          carry = v >> 32;
        }
      };
      const auto arctan = [&](u32 inverse, u32 times) {
        Number term(n_words);
        term[0] = times;
        term = divide(term, inverse);
        Number sum = term;
        for (u32 k = 1; k < 700; ++k) {
          term = divide(divide(term, inverse), inverse);
          add_to(sum, divide(term, 2 * k + 1), k % 2 == 1);
        }
        return sum;
      };
      Number half_pi = arctan(5, 8);  // pi / 2 = 8 arctan(1/5) - 2 arctan(1/239)
      add_to(half_pi, arctan(239, 2), true);
      // bits of 1 / (pi / 2): restoring division
      Number rest(n_words);
      rest[0] = 1;
      std::vector<bool> bits;
      for (int k = 0; k < 1201; ++k) {
        add_to(rest, Number(rest), false);
        const bool fits = rest >= half_pi;
        if (fits) add_to(rest, half_pi, true);
        bits.push_back(fits);
      }
      return bits;
    }();
    u64 shift = (b32 & 31) * 53;
    const i64 exponent = exponent_field(f64, a);
    if (exponent > 1077) shift += static_cast<u64>(exponent - 1077);
    u64 whole = 0;
    for (u64 k = 0; k < 53; ++k)
      whole = whole << 1 | (shift + k < digits.size() && digits[shift + k] ? 1 : 0);
    i64 scale = -53 - static_cast<i64>(shift);
    if (exponent >= 1968) scale += 128;
    return value(rounded(f64, Fixed(false, whole, scale), 0, false));
  }
  if (n.starts_with("cube")) {
    const auto x = as_float(a), y = as_float(b), z = as_float(c);
    const bool major_z = std::fabs(z) >= std::fabs(x) && std::fabs(z) >= std::fabs(y),
               major_y = std::fabs(y) >= std::fabs(x);
    if (n == "cubeid_f32")
      return value(std::bit_cast<u32>(major_z   ? (z < 0 ? 5.0f : 4.0f)
                                      : major_y ? (y < 0 ? 3.0f : 2.0f)
                                                : (x < 0 ? 1.0f : 0.0f)));
    if (n == "cubesc_f32")
      return value(major_z ? (z < 0 ? neg(f32, a) : a) : major_y ? a : (x < 0 ? c : neg(f32, c)));
    if (n == "cubetc_f32")
      return value(major_z ? neg(f32, b) : major_y ? (y < 0 ? neg(f32, c) : c) : neg(f32, b));
    const u64 major = major_z ? c : major_y ? b : a;
    const u64 doubled = mul(f32, m, major, std::bit_cast<u32>(2.0f));
    return value(is_nan(f32, doubled) ? nan_of(f32, m, {a, b, c}) : doubled);
  }
  return std::nullopt;
}

/// The bounded ones, from long double.
std::optional<u64> bounded_operation(string_view n, const Mode& m, u64 a) {
  const auto cut = n.rfind('_');
  if (cut == string_view::npos) return std::nullopt;
  const Format* f = format_of(n.substr(cut + 1));
  if (f == nullptr) return std::nullopt;
  string_view op = n.substr(0, cut);
  for (const string_view suffix : {"_legacy", "_iflag"})
    if (op.ends_with(suffix)) op.remove_suffix(suffix.size());
  static constexpr string_view known[] = {"exp", "log", "rcp", "rsq", "sqrt", "sin", "cos"};
  bool found = false;
  for (const string_view k : known) found = found || k == op;
  if (!found) return std::nullopt;
  const u64 x = f->bits == 32 ? flushed(f32, a) : a;
  if (is_nan(*f, x)) return nan_of(*f, m, {x});
  const Parts p = [&] { return is_inf(*f, x) ? Parts{negative(*f, x), 1, 0} : parts(*f, x); }();
  long double v = is_inf(*f, x)
                      ? std::numeric_limits<long double>::infinity()
                      : std::scalbn(static_cast<long double>(p.significand), static_cast<int>(p.exponent));
  if (p.negative) v = -v;
  long double r;
  const long double turn = 2 * 3.14159265358979323846264338327950288L;
  if (op == "exp") {
    r = std::exp2(v);
  } else if (op == "log") {
    r = std::log2(v);
  } else if (op == "rcp") {
    r = 1 / v;
  } else if (op == "rsq") {
    r = 1 / std::sqrt(v);
  } else if (op == "sqrt") {
    r = std::sqrt(v);
  } else if (std::isinf(v)) {
    r = std::numeric_limits<long double>::quiet_NaN();
  } else if (std::fabs(v) > 256) {
    r = op == "sin" ? std::copysign(0.0L, v) : 1;
  } else {
    const long double rest = v - std::rint(v);
    r = op == "sin"                ? (rest == 0 ? std::copysign(0.0L, v) : std::sin(rest * turn))
        : std::fabs(rest) == 0.25L ? 0
                                   : std::cos(rest * turn);
    if (op == "sin" && std::fabs(rest) == 0.5L) r = 0;
  }
  if (std::isnan(r)) return f->default_nan();
  u64 bits;
  if (std::isinf(r)) {
    bits = f->infinity() | (r < 0 ? f->sign() : 0);
  } else if (r == 0) {
    bits = std::signbit(r) ? f->sign() : 0;
  } else {
    int e;
    const long double mantissa = std::frexp(std::fabs(r), &e);
    bits = rounded(*f, Fixed(r < 0, static_cast<u128>(std::scalbn(mantissa, 64)), e - 64), 0, false);
  }
  return f->bits == 32 ? flushed(f32, bits) : f->bits == 16 ? stop_overflow(m, bits, !std::isinf(r)) : bits;
}

u64 inline_constant(unsigned code, Slot slot, const Instruction& in, const Machine& before) {
  const bool two = dwords(slot) >= 2, twice = slot == Slot::v2f32 || slot == Slot::v2b32;
  u64 v;
  if (code >= 128 && code <= 192) {
    v = code - 128;
  } else if (code > 192 && code <= 208) {
    v = static_cast<u64>(-static_cast<i64>(code - 192));
  } else if (code >= 240 && code <= 248) {
    const double known[] = {0.5, -0.5, 1, -1, 2, -2, 4, -4, 0.15915494309189532};
    const double x = known[code - 240];
    if (slot == Slot::f16 || slot == Slot::v2f16)
      v = code == 248 ? 0x3118 : convert(f64, f16, Mode{}, std::bit_cast<u64>(x));
    else if (two && !twice)
      v = std::bit_cast<u64>(x);
    else
      v = std::bit_cast<u32>(static_cast<float>(x));
  } else if (code == 255) {
    v = slot == Slot::f64 ? u64{in.literal} << 32 : in.literal;
  } else if (code == 251) {
    v = before.pair(106) == 0;
  } else if (code == 252) {
    v = before.pair(126) == 0;
  } else {
    v = before.scc;
  }
  if (twice) v = (v & 0xffffffff) | v << 32;
  return two ? v : v & 0xffffffff;
}

struct DppSource {
  int lane = -1;  ///< -1: none
  bool written = true;
};
DppSource dpp_source(const Instruction& in, u64 exec, int lane) {
  const int row = lane / 16, k = lane % 16;
  const unsigned ctrl = in.dpp_ctrl;
  const int n = static_cast<int>(ctrl & 0xf);
  int from = -1;
  if (ctrl < 0x100) {
    from = lane / 4 * 4 + static_cast<int>(ctrl >> (2 * (lane % 4)) & 3);
  } else if (ctrl < 0x110) {
    if (k + n <= 15) from = row * 16 + k + n;
  } else if (ctrl < 0x120) {
    if (k >= n) from = row * 16 + k - n;
  } else if (ctrl < 0x130) {
    from = row * 16 + (k + 16 - n) % 16;
  } else if (ctrl == 0x130) {
    if (lane != 63) from = lane + 1;
  } else if (ctrl == 0x134) {
    from = (lane + 1) % 64;
  } else if (ctrl == 0x138) {
    if (lane != 0) from = lane - 1;
  } else if (ctrl == 0x13c) {
    from = (lane + 63) % 64;
  } else if (ctrl == 0x140) {
    from = row * 16 + (15 - k);
  } else if (ctrl == 0x141) {
    from = lane / 8 * 8 + (7 - lane % 8);
  } else if (ctrl == 0x142) {
    if (row > 0) from = row * 16 - 1;
  } else if (ctrl == 0x143) {
    if (row >= 2) from = 31;
  } else {
    from = row * 16 + n;
  }
  if (from >= 0 && (exec >> from & 1) == 0) from = -1;
  DppSource s;
  s.lane = from;
  s.written =
      (in.row_mask >> row & 1) != 0 && (in.bank_mask >> (k / 4) & 1) != 0 && (from >= 0 || in.bound_ctrl);
  return s;
}

/// MODE's denormal bits: does this operation look at them?
bool sees_denormal_mode(string_view n, const OpInfo& shape) {
  if (!shape.has(op_flag::reads_mode)) return false;
  for (const string_view odd : {"dot2", "cvt_pk_fp8", "cvt_pk_bf8", "cvt_sr", "trig_preop", "cvt_i32",
                                "cvt_u32", "cvt_pk_u8", "cvt_pkaccum"})
    if (n.starts_with(odd)) return false;
  return true;
}

enum class Kind { bits, half, single, full, two_halves, two_singles };
Kind result_kind(string_view n) {
  if (n.starts_with("cmp") || n.starts_with("mbcnt") || n.starts_with("frexp_exp")) return Kind::bits;
  if (n.starts_with("pk_") && n.ends_with("_f16")) return Kind::two_halves;
  if (n.starts_with("pk_") && n.ends_with("_f32")) return Kind::two_singles;
  if (n == "cvt_pkrtz_f16_f32") return Kind::two_halves;
  if (n.starts_with("cvt_pk") || n.starts_with("cvt_sr") || n.starts_with("pack")) return Kind::bits;
  if (n.starts_with("cvt_")) {
    n.remove_prefix(4);
    if (n.starts_with("off_")) return Kind::single;
    return n.starts_with("f16")   ? Kind::half
           : n.starts_with("f32") ? Kind::single
           : n.starts_with("f64") ? Kind::full
                                  : Kind::bits;
  }
  if (n == "dot2_f32_f16" || n == "dot2c_f32_f16") return Kind::single;
  if (n.ends_with("_f16")) return Kind::half;
  if (n.ends_with("_f32")) return Kind::single;
  if (n.ends_with("_f64")) return Kind::full;
  return Kind::bits;
}

bool rounds_to_half(string_view op) {
  return op != "min" && op != "max" && op != "min3" && op != "max3" && op != "med3" &&
         !op.starts_with("div_fixup");
}
bool all_finite(const Lane& lane, int at) {
  for (const u64 s : lane.s)
    if (magnitude(f16, s >> at & 0xffff) >= f16.infinity()) return false;
  return true;
}

u64 post(const Format& f, const Instruction& in, const Mode& m, bool flushes, u64 x) {
  const u32 out_bit = f.bits == 32 ? 1u << 5 : 1u << 7;
  if (flushes && (m.bits & out_bit) == 0) x = flushed(f, x);
  if (in.omod != 0 && !m.ieee() && (m.bits & out_bit) == 0 && !is_nan(f, x))
    x = flushed(f, ldexp(f, Mode{m.bits, 0}, flushed(f, x), in.omod == 3 ? -1 : in.omod));
  if (in.clamp) {
    if (is_nan(f, x)) return (m.bits & dx10_bit) != 0 ? 0 : x;
    const u64 one = static_cast<u64>(f.emax) << (f.p - 1);
    if (negative(f, x)) return 0;
    return magnitude(f, x) > one ? one : x;
  }
  return x;
}

bool keeps_other_half(string_view n) {
  for (const string_view k :
       {"mad_f16", "mad_u16", "mad_i16", "fma_f16", "div_fixup_f16", "mac_f16", "madmk_f16", "madak_f16",
        "add_i16", "sub_i16", "min3_f16", "min3_i16", "min3_u16", "max3_f16", "max3_i16", "max3_u16",
        "med3_f16", "med3_i16", "med3_u16"})
    if (n == k) return true;
  return false;
}
bool is_half_result(string_view n) {
  if (n.starts_with("pk_") || n.starts_with("cvt_pk") || n.starts_with("pack") || n.starts_with("dot") ||
      n.starts_with("sad_") || n.starts_with("qsad") || n.starts_with("mad_u32") ||
      n.starts_with("mad_i32") || n.starts_with("cmp"))
    return false;
  if (n.starts_with("cvt_")) {
    n.remove_prefix(4);
    return n.starts_with("f16") || n.starts_with("u16") || n.starts_with("i16") || n.starts_with("norm");
  }
  if (n == "sat_pk_u8_i16" || n == "frexp_exp_i16_f16") return true;
  return n.ends_with("_f16") || n.ends_with("_u16") || n.ends_with("_i16") || n.ends_with("_b16");
}

}  // namespace

float fp8_value(std::uint8_t byte, bool e5m2) {
  if (byte == 0x80) return std::numeric_limits<float>::quiet_NaN();
  const int precision = e5m2 ? 2 : 3, bias = e5m2 ? 16 : 8;
  const int exponent = (byte & 0x7f) >> precision, fraction = byte & ((1 << precision) - 1);
  const double v = exponent == 0 ? std::ldexp(fraction, 1 - bias - precision)
                                 : std::ldexp(fraction + (1 << precision), exponent - bias - precision);
  return static_cast<float>((byte & 0x80) != 0 ? -v : v);
}

std::uint8_t fp8_nearest(float x, bool e5m2, bool saturate) {
  if (std::isnan(x)) return 0x80;
  const std::uint8_t sign = std::signbit(x) ? 0x80 : 0;
  const std::uint8_t overflow = saturate ? static_cast<std::uint8_t>(sign | 0x7f) : std::uint8_t{0x80};
  const double v = std::fabs(static_cast<double>(x));
  // The number after the largest one decides about overflow: at or beyond the middle it would win.
  const double largest = fp8_value(0x7f, e5m2), step = largest - static_cast<double>(fp8_value(0x7e, e5m2));
  if (v >= largest + step / 2) return overflow;
  int best = 0;
  for (int k = 1; k < 128; ++k) {
    const double candidate = std::fabs(v - fp8_value(static_cast<std::uint8_t>(k), e5m2));
    const double current = std::fabs(v - fp8_value(static_cast<std::uint8_t>(best), e5m2));
    if (candidate < current || (candidate == current && k % 2 == 0)) best = k;
  }
  return best == 0 ? std::uint8_t{0} : static_cast<std::uint8_t>(sign | best);
}

bool is_bounded(Op op) {
  string_view n = info(op).name;
  n.remove_prefix(2);
  return bounded_operation(n, Mode{}, 0).has_value();
}

bool step(const Instruction& in, Machine& machine) {
  const Machine before = machine;
  const OpInfo& shape = info(in.op);
  string_view n = shape.name;
  if (!eats(n, "v_")) return false;
  const u64 exec = before.pair(126);
  const auto row_of = [](u32 code) { return code - 256; };
  const bool indexing = (before.mode & 1u << 27) != 0;
  const auto shifted = [&](u32 row, unsigned operand) {
    return indexing && (before.sgpr[124] >> (12 + operand) & 1) != 0 ? row + (before.sgpr[124] & 0xff) : row;
  };
  const auto scalar = [&](unsigned code, Slot slot) -> u64 {
    if (code < 128) return dwords(slot) >= 2 ? before.pair(code) : before.sgpr[code];
    return inline_constant(code, slot, in, before);
  };

  if (n == "nop" || n == "clrexcp") return true;
  if (n == "readfirstlane_b32") {
    unsigned lane = 0;
    while (exec != 0 && (exec >> lane & 1) == 0) ++lane;
    machine.sgpr[in.dst] = in.src[0] >= 256 ? before.vgpr[shifted(row_of(in.src[0]), 0) * 64 + lane]
                                            : static_cast<u32>(scalar(in.src[0], Slot::b32));
    return true;
  }
  if (n == "readlane_b32") {
    const u64 lane = scalar(in.src[1], Slot::b32) & 63;
    machine.sgpr[in.dst] = before.vgpr[shifted(row_of(in.src[0]), 0) * 64 + lane];
    return true;
  }
  if (n == "writelane_b32") {
    const u64 lane = scalar(in.src[1], Slot::b32) & 63;
    machine.vgpr[shifted(row_of(in.dst), 3) * 64 + lane] = static_cast<u32>(scalar(in.src[0], Slot::b32));
    return true;
  }
  if (n == "swap_b32") {
    for (unsigned lane = 0; lane < 64; ++lane)
      if ((exec >> lane & 1) != 0)
        std::swap(machine.vgpr[row_of(in.dst) * 64 + lane], machine.vgpr[row_of(in.src[0]) * 64 + lane]);
    return true;
  }

  const bool compares = n.starts_with("cmp"), packed = in.encoding == Encoding::vop3p;
  const bool mixing = n.starts_with("fma_mix"), sdwa = in.extension == Extension::sdwa;
  const Kind kind = result_kind(n);
  const bool flushes = sees_denormal_mode(n, shape);
  const u32 rounding_single = before.mode & 3, rounding_other = before.mode >> 2 & 3;
  Mode mode{before.mode,
            kind == Kind::single || kind == Kind::two_singles ? rounding_single : rounding_other};
  const u64 vcc = before.pair(106);
  const u64 mask_in =
      shape.src[2] == Slot::mask && in.src[2] != operand::none ? scalar(in.src[2], Slot::b64) : vcc;
  u64 mask_out = 0;

  const auto flush_source = [&](Slot slot, u64 x) {
    const bool single = (before.mode & 1u << 4) == 0, other = (before.mode & 1u << 6) == 0;
    if (slot == Slot::f32 && single) return flushed(f32, x);
    if (slot == Slot::v2f32 && single) return flushed(f32, x & 0xffffffff) | flushed(f32, x >> 32) << 32;
    if (slot == Slot::f64 && other) return flushed(f64, x);
    if (slot == Slot::f16 && other) return (x & ~u64{0xffff}) | flushed(f16, x & 0xffff);
    if (slot == Slot::v2f16 && other) return flushed(f16, x & 0xffff) | flushed(f16, x >> 16 & 0xffff) << 16;
    return x;
  };

  for (unsigned lane = 0; lane < 64; ++lane) {
    Lane work;
    work.index = lane;
    work.mode = mode;
    work.clamp = in.clamp;
    work.mask_in = (mask_in >> lane & 1) != 0;
    bool written = (exec >> lane & 1) != 0;
    for (unsigned k = 0; k < 3; ++k) {
      Slot slot = shape.src[k];
      if (slot == Slot::mask) continue;
      unsigned from = lane;
      if (slot == Slot::none) {
        if (k == 2 && shape.has(op_flag::reads_dst)) {
          const u32 row = shifted(row_of(in.dst), 3);
          work.s[2] = before.vgpr[row * 64 + lane];
          if (dwords(shape.dst) == 2) work.s[2] |= u64{before.vgpr[(row + 1) * 64 + lane]} << 32;
          const Slot as = kind == Kind::single       ? Slot::f32
                          : kind == Kind::full       ? Slot::f64
                          : kind == Kind::half       ? Slot::f16
                          : kind == Kind::two_halves ? Slot::v2f16
                                                     : Slot::b32;
          if (flushes && !mixing) work.s[2] = flush_source(as, work.s[2]);
        }
        continue;
      }
      const bool mix_half = mixing && (in.op_sel_hi >> k & 1) != 0;
      if (mixing && !mix_half) slot = Slot::f32;
      u64 x = 0;
      bool zeroed = false;
      if (k == 0 && in.extension == Extension::dpp) {
        const DppSource s = dpp_source(in, exec, static_cast<int>(lane));
        written = written && s.written;
        zeroed = s.lane < 0;
        from = static_cast<unsigned>(zeroed ? 0 : s.lane);
      }
      if (in.src[k] >= 256) {
        const u32 row = shifted(row_of(in.src[k]), k);
        x = before.vgpr[row * 64 + from];
        if (dwords(slot) >= 2) x |= u64{before.vgpr[(row + 1) * 64 + from]} << 32;
        if (slot == Slot::b128)
          for (unsigned w = 0; w < 4; ++w) work.wide_addend[w] = before.vgpr[(row + w) * 64 + from];
        if (zeroed) x = 0;
      } else {
        x = scalar(in.src[k], slot);
      }
      if (sdwa && k < 2) {
        const unsigned select = in.src_sel[k];
        if (select < 6) {
          const int width = select < 4 ? 8 : 16;
          const u64 field = zext(x >> (select < 4 ? 8 * select : 16 * (select - 4)), width);
          x = (in.sext >> k & 1) != 0 ? zext(static_cast<u64>(sext(field, width)), 32) : field;
        }
      }
      const u64 minus = in.neg >> k & 1, other = in.abs >> k & 1;
      if (packed) {
        const u64 low_pick = in.op_sel >> k & 1, high_pick = in.op_sel_hi >> k & 1;
        if (slot == Slot::v2f32) {
          const u64 low = (low_pick != 0 ? x >> 32 : x & 0xffffffff) ^ minus << 31;
          const u64 high = (high_pick != 0 ? x >> 32 : x & 0xffffffff) ^ other << 31;
          x = low | high << 32;
        } else if (slot == Slot::v2b32) {
          x = low_pick != 0 ? x >> 32 : x & 0xffffffff;
        } else if (mixing) {
          if (mix_half) {
            x = x >> (16 * low_pick) & 0xffff;
            x = convert(f16, f32, Mode{}, flush_source(Slot::f16, x), false);
          }
          if (other != 0) x &= 0x7fffffff;
          x ^= minus << 31;
          slot = Slot::f32;
        } else if (slot == Slot::v2f16 || slot == Slot::v2b16) {
          const u64 low = x >> (16 * low_pick) & 0xffff, high = x >> (16 * high_pick) & 0xffff;
          x = low | high << 16;
          if (slot == Slot::v2f16) x ^= minus << 15 | other << 31;
        } else if (slot == Slot::f32) {
          x ^= minus << 31;
        }
      } else {
        const bool half = slot == Slot::f16 || slot == Slot::b16;
        if (half && in.encoding == Encoding::vop3 && (in.op_sel >> k & 1) != 0) x = x >> 16 & 0xffff;
        const u64 sign = half ? 0x8000 : dwords(slot) >= 2 ? u64{1} << 63 : 0x80000000;
        if (other != 0) x &= ~sign;
        if (minus != 0) x ^= sign;
      }
      if (flushes) x = flush_source(slot, x);
      work.s[k] = x;
    }

    const u32 dst_row = compares ? 0 : shifted(row_of(in.dst), 3);
    if (!compares) work.old = before.vgpr[dst_row * 64 + lane];

    Outcome out;
    if (compares) {
      string_view rest = n;
      eats(rest, "cmpx_") || eats(rest, "cmp_");
      const auto cut = rest.find('_');
      const string_view predicate = rest.substr(0, cut), type = rest.substr(cut + 1);
      const Format* f = format_of(type);
      const int width = type.ends_with("16") ? 16 : type.ends_with("32") ? 32 : 64;
      const u64 a = zext(work.s[0], width), b = zext(work.s[1], width);
      bool holds;
      if (predicate == "class") {
        holds = class_matches(*f, a, work.s[1]);
      } else if (f != nullptr) {
        holds = compare_holds(predicate, order(*f, a, b).value_or(2));
      } else if (type[0] == 'i') {
        const i64 x = sext(a, width), y = sext(b, width);
        holds = compare_holds(predicate, x < y ? -1 : x > y ? 1 : 0);
      } else {
        holds = compare_holds(predicate, a < b ? -1 : a > b ? 1 : 0);
      }
      out.mask_out = holds;
    } else if (const auto bounded = bounded_operation(
                   n, Mode{before.mode, 0}, shape.src[0] == Slot::f16 ? work.s[0] & 0xffff : work.s[0])) {
      out.value = *bounded;
    } else if (const auto named = named_operation(n, work)) {
      out = *named;
    } else {
      string_view base = n;
      const bool both = eats(base, "pk_");
      const auto cut = base.rfind('_');
      const string_view op = base.substr(0, cut), type = base.substr(cut + 1);
      const Format* f = format_of(type);
      const int width = type.ends_with("16") ? 16 : type.ends_with("32") ? 32 : 64;
      const auto one = [&](int at) -> std::optional<u64> {
        u64 s[3];
        for (int k = 0; k < 3; ++k) s[k] = zext(work.s[k] >> at, width);
        if (op.ends_with("rev") && width == 64) s[0] = work.s[0];
        if (f != nullptr) {
          if (op == "ldexp") s[1] = work.s[1];
          return float_operation(op, *f, mode, s[0], s[1], s[2]);
        }
        return integer_operation(op, width, type[0] == 'i', in.clamp, s[0], s[1], s[2]);
      };
      const auto low = one(0);
      if (!low) return false;
      out.value = *low;
      if (both) out.value |= *one(width) << width;
      if (kind == Kind::half)
        out.value = stop_overflow(
            mode, out.value,
            rounds_to_half(op) &&
                (op == "ldexp" ? magnitude(f16, work.s[0] & 0xffff) < f16.infinity() : all_finite(work, 0)));
      if (kind == Kind::two_halves && rounds_to_half(op)) {
        u64 r = 0;
        for (int at = 0; at < 32; at += 16) {
          r |= stop_overflow(mode, out.value >> at & 0xffff, all_finite(work, at)) << at;
        }
        out.value = r;
      }
    }

    if (out.mask_out && (exec >> lane & 1) != 0) mask_out |= u64{1} << lane;
    if (compares) continue;
    switch (kind) {
      case Kind::half:
        out.value = post(f16, in, mode, flushes, out.value & 0xffff);
        break;
      case Kind::single:
        out.value = post(f32, in, mode, flushes, out.value & 0xffffffff);
        break;
      case Kind::full:
        out.value = post(f64, in, mode, flushes, out.value);
        break;
      case Kind::two_halves:
        out.value = post(f16, in, mode, flushes, out.value & 0xffff) |
                    post(f16, in, mode, flushes, out.value >> 16 & 0xffff) << 16;
        break;
      case Kind::two_singles:
        out.value = post(f32, in, mode, flushes, out.value & 0xffffffff) |
                    post(f32, in, mode, flushes, out.value >> 32) << 32;
        break;
      case Kind::bits:
        break;
    }
    if (!written) continue;
    u32* const to = &machine.vgpr[dst_row * 64 + lane];
    const unsigned count = dwords(shape.dst);
    if (count == 4) {
      for (unsigned w = 0; w < 4; ++w) to[w * 64] = out.wide[w];
      continue;
    }
    auto v = static_cast<u32>(out.value);
    const auto put = [&](unsigned at, int width) {
      const u32 field = static_cast<u32>(zext(~u64{0}, width)) << at;
      return (work.old & ~field) | (v << at & field);
    };
    if (n.starts_with("cvt_pk_fp8") || n.starts_with("cvt_pk_bf8")) {
      v = put((in.op_sel >> 3 & 1) * 16, 16);
    } else if (n.starts_with("cvt_sr")) {
      v = put((in.op_sel >> 2 & 3) * 8, 8);
    } else if (n == "fma_mixlo_f16") {
      v = put(0, 16);
    } else if (n == "fma_mixhi_f16") {
      v = put(16, 16);
    } else if (sdwa && in.dst_sel != 6) {
      const int width = in.dst_sel < 4 ? 8 : 16;
      const unsigned at = in.dst_sel < 4 ? 8u * in.dst_sel : 16u * (in.dst_sel - 4u);
      if (in.dst_unused == 2)
        v = put(at, width);
      else if (in.dst_unused == 1)
        v = static_cast<u32>(static_cast<u64>(sext(v, width)) << at);
      else
        v = static_cast<u32>(zext(v, width) << at);
    } else if (is_half_result(n)) {
      if (in.encoding == Encoding::vop3 && (in.op_sel >> 3 & 1) != 0)
        v = put(16, 16);
      else if (keeps_other_half(n) && !sdwa)
        v = put(0, 16);
      else
        v &= 0xffff;
    }
    to[0] = v;
    if (count == 2) to[64] = static_cast<u32>(out.value >> 32);
  }

  const auto set_mask = [&](unsigned code) {
    machine.sgpr[code] = static_cast<u32>(mask_out);
    machine.sgpr[code + 1] = static_cast<u32>(mask_out >> 32);
  };
  if (compares) {
    if (n.starts_with("cmpx")) set_mask(126);
    set_mask(in.dst == operand::none ? 106 : in.dst);
  } else if (shape.sdst == Slot::mask) {
    set_mask(in.sdst == operand::none ? 106 : in.sdst);
  }
  return true;
}

}  // namespace attest::device::sim::model
