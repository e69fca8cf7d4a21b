// SPDX-License-Identifier: MIT
//
// The safetensors format (https://github.com/huggingface/safetensors#format): tensors by name in one file.
//
//   8 bytes   length N of the header, unsigned, little endian; at most 100'000'000
//   N bytes   the header: a JSON object, perhaps with spaces behind it,
//               {"__metadata__": {"op": "mla_decode"},
//                "q": {"dtype": "BF16", "shape": [2, 16, 576], "data_offsets": [0, 36864]}, ...}
//   the rest  the tensors, row-major, little endian, where their offsets say, from the end of the header
//
// The ranges of the tensors cover the rest exactly once, without holes: a file holds nothing that is not
// named. A reader of files from elsewhere must not trust any of this, so all of it is checked; the tensors'
// bytes may then be at any address, aligned to nothing.
//
//   const SafetensorsFile file("x.safetensors");             // UsageError: one line that names the file
//   const TensorView& q = file.required("q");
//   write_safetensors("y.safetensors", {{"op", "mla_decode"}}, {{"out", Dtype::bf16, {2, 16, 512}, bytes}});
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cases/sparse_bytes.h"
#include "fuzz/usage_error.h"

namespace attest::fuzz::exchange {

/// Element types of at least a byte. F8_E4M3 is OCP's (torch.float8_e4m3fn), F8_E4M3FNUZ that of gfx942
/// (torch.float8_e4m3fnuz): the same byte means values a factor 2 apart.
enum class Dtype : std::uint8_t {
  boolean,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  i64,
  u64,
  f64,
};
/// As files spell it: "BF16", "F8_E4M3FNUZ".
const char* name(Dtype dtype);
std::size_t element_bytes(Dtype dtype);

using Shape = std::vector<std::uint64_t>;
/// "[2, 16, 576]"
std::string shown(const Shape& shape);
using Metadata = std::map<std::string, std::string>;

struct TensorView {
  std::string name;
  Dtype dtype = Dtype::u8;
  Shape shape;
  std::span<const std::byte> bytes;  ///< unaligned
};

struct Safetensors {
  Metadata metadata;
  std::vector<TensorView> tensors;  ///< in the order of their bytes

  /// nullptr when there is none of that name.
  [[nodiscard]] const TensorView* find(std::string_view name) const;
};

/// What `file` holds; views refer to it. Throws UsageError, one line without the file's name: too short, a
/// header that is too large or no such JSON, a name given twice, an unknown element type, a shape that
/// overflows or contradicts its bytes, ranges that overlap, leave holes, or end outside of the file.
Safetensors parse_safetensors(std::span<const std::byte> file);

/// A file, mapped while the object lives.
class SafetensorsFile {
 public:
  /// Throws UsageError with one line that names the file.
  explicit SafetensorsFile(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const Metadata& metadata() const { return content_.metadata; }
  [[nodiscard]] const std::vector<TensorView>& tensors() const { return content_.tensors; }
  [[nodiscard]] const TensorView* find(std::string_view name) const { return content_.find(name); }
  /// Throws UsageError that lists what the file does hold.
  [[nodiscard]] const TensorView& required(std::string_view name) const;

 private:
  std::string path_;
  std::span<const std::byte> bytes_;
  Safetensors content_;
};

/// A tensor to write: its bytes, or those of a range of which only some extents have content.
struct TensorSource {
  std::string name;
  Dtype dtype = Dtype::u8;
  Shape shape;
  std::span<const std::byte> bytes{};
  const cases::SparseBytes* sparse = nullptr;  ///< instead of `bytes`; the rest becomes holes of the file
};

/// Tensors lie in the order of falling element size, then as given, from a multiple of 8 on: each is aligned
/// to its elements. Throws UsageError when the file cannot be written; what was there then stays.
void write_safetensors(const std::string& path, const Metadata& metadata,
                       const std::vector<TensorSource>& tensors);

}  // namespace attest::fuzz::exchange
