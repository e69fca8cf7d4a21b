// SPDX-License-Identifier: MIT
#include "fuzz/exchange/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

namespace attest::fuzz::exchange {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t length_bytes = 8;
constexpr std::uint64_t most_header_bytes = 100'000'000;
constexpr const char* metadata_key = "__metadata__";

struct Kind {
  const char* name;
  std::size_t bytes;
};
constexpr Kind kinds[] = {
    {"BOOL", 1},        {"U8", 1},          {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"F8_E8M0", 1},
    {"F8_E4M3FNUZ", 1}, {"F8_E5M2FNUZ", 1}, {"I16", 2}, {"U16", 2},     {"F16", 2},     {"BF16", 2},
    {"I32", 4},         {"U32", 4},         {"F32", 4}, {"I64", 8},     {"U64", 8},     {"F64", 8}};

[[noreturn]] void refuse(const std::string& what) {
  throw UsageError(what);
}

/// Names come from the file: one line, and not a long one.
std::string one_line(std::string_view text) {
  constexpr std::size_t most = 60;
  const std::string cut(text.substr(0, most));
  return Json(text.size() > most ? cut + "..." : cut).dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::uint64_t read_length(std::span<const std::byte> file) {
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= std::to_integer<std::uint64_t>(file[i]) << (8 * i);
  return length;
}

/// The header as JSON. The parser keeps the last of equal keys and says nothing: they are looked for.
Json parse_header(std::string_view text) {
  std::vector<std::set<std::string>> open;
  std::string twice;
  const auto watch = [&](int, Json::parse_event_t event, const Json& value) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.back().insert(value.get<std::string>()).second &&
        twice.empty())
      twice = value.get<std::string>();
    return true;
  };
  Json header;
  try {
    header = Json::parse(text, watch);
  } catch (const Json::exception&) {
    refuse("its header is not JSON");
  }
  if (!header.is_object()) refuse("its header is no JSON object");
  if (!twice.empty()) refuse(fmt::format("its header has {} twice", one_line(twice)));
  return header;
}

Metadata parse_metadata(const Json& json) {
  Metadata metadata;
  if (!json.is_object()) refuse("__metadata__ is no JSON object");
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) refuse(fmt::format("__metadata__: {} is no string", one_line(key)));
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

std::uint64_t number(const Json& json, const std::string& where) {
  if (!json.is_number_integer() || (!json.is_number_unsigned() && json.get<std::int64_t>() < 0))
    refuse(fmt::format("{}: its shape and data_offsets must be lists of numbers from 0 on", where));
  return json.get<std::uint64_t>();
}

struct Range {
  std::uint64_t begin = 0, end = 0;
};

/// One tensor of the header; its bytes are not looked at yet.
std::pair<TensorView, Range> parse_tensor(const std::string& tensor, const Json& json) {
  const std::string where = "tensor " + one_line(tensor);
  if (!json.is_object() || json.size() != 3 || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets"))
    refuse(fmt::format("{}: must have dtype, shape and data_offsets, nothing else", where));
  TensorView view;
  view.name = tensor;
  const Json& dtype = json.at("dtype");
  const std::string spelled = dtype.is_string() ? dtype.get<std::string>() : "";
  const auto* kind =
      std::find_if(std::begin(kinds), std::end(kinds), [&](const Kind& k) { return spelled == k.name; });
  if (kind == std::end(kinds)) refuse(fmt::format("{}: dtype {} is not known", where, one_line(spelled)));
  view.dtype = static_cast<Dtype>(kind - std::begin(kinds));

  const Json& shape = json.at("shape");
  const Json& offsets = json.at("data_offsets");
  if (!shape.is_array() || !offsets.is_array() || offsets.size() != 2)
    refuse(fmt::format("{}: its shape and data_offsets must be lists of numbers from 0 on", where));
  std::uint64_t bytes = kind->bytes;
  for (const Json& extent : shape) {
    view.shape.push_back(number(extent, where));
    if (__builtin_mul_overflow(bytes, view.shape.back(), &bytes))
      refuse(fmt::format("{}: its shape has more bytes than 64 bits count", where));
  }
  const Range range{number(offsets[0], where), number(offsets[1], where)};
  if (range.end < range.begin || range.end - range.begin != bytes)
    refuse(fmt::format("{}: {} of {} takes {} bytes, its data_offsets are {} to {}", where, spelled,
                       view.shape.size() > 8 ? "its shape" : shown(view.shape), bytes, range.begin,
                       range.end));
  return {std::move(view), range};
}

[[noreturn]] void refuse_to_write(const std::string& path) {
  throw UsageError(
      fmt::format("{}: cannot be written: {}; choose another place", path, std::strerror(errno)));
}

class Writer {
 public:
  explicit Writer(const std::string& path) : path_(path), part_(path + ".part") {
    fd_ = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd_ < 0) refuse_to_write(path_);
  }
  ~Writer() {
    if (fd_ >= 0) ::close(fd_);
    if (!done_) ::unlink(part_.c_str());
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void put(std::uint64_t offset, std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) refuse_to_write(path_);
      offset += static_cast<std::uint64_t>(n);
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }
  void finish(std::uint64_t size) {
    if (::ftruncate(fd_, static_cast<off_t>(size)) != 0) refuse_to_write(path_);
    const int closed = ::close(std::exchange(fd_, -1));
    if (closed != 0 || std::rename(part_.c_str(), path_.c_str()) != 0) refuse_to_write(path_);
    done_ = true;
  }

 private:
  std::string path_, part_;
  int fd_ = -1;
  bool done_ = false;
};

}  // namespace

const char* name(Dtype dtype) {
  return kinds[static_cast<std::size_t>(dtype)].name;
}

std::size_t element_bytes(Dtype dtype) {
  return kinds[static_cast<std::size_t>(dtype)].bytes;
}

std::string shown(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

const TensorView* Safetensors::find(std::string_view name) const {
  const auto at =
      std::find_if(tensors.begin(), tensors.end(), [&](const TensorView& t) { return t.name == name; });
  return at == tensors.end() ? nullptr : &*at;
}

Safetensors parse_safetensors(std::span<const std::byte> file) {
  if (file.size() < length_bytes)
    refuse(fmt::format("{} bytes are too few for a safetensors file", file.size()));
  const std::uint64_t length = read_length(file);
  if (length > most_header_bytes)
    refuse(fmt::format("its header claims {} bytes, {} are allowed; is it a safetensors file?", length,
                       most_header_bytes));
  if (length > file.size() - length_bytes)
    refuse(fmt::format("its header claims {} bytes, {} are there: the file is cut off", length,
                       file.size() - length_bytes));
  const std::span<const std::byte> data = file.subspan(length_bytes + length);
  const Json header = parse_header(
      {reinterpret_cast<const char*>(file.data()) + length_bytes, static_cast<std::size_t>(length)});

  Safetensors content;
  std::vector<std::pair<TensorView, Range>> tensors;
  for (const auto& [key, value] : header.items()) {
    if (key == metadata_key)
      content.metadata = parse_metadata(value);
    else
      tensors.push_back(parse_tensor(key, value));
  }
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::tie(a.second.begin, a.second.end, a.first.name) <
           std::tie(b.second.begin, b.second.end, b.first.name);
  });
  std::uint64_t reached = 0;
  for (auto& [view, range] : tensors) {
    const std::string where = "tensor " + one_line(view.name);
    if (range.end > data.size())
      refuse(fmt::format("{}: ends at byte {} of {}: the file is cut off", where, range.end, data.size()));
    if (range.begin < reached) refuse(fmt::format("{}: overlaps the one before it", where));
    if (range.begin > reached)
      refuse(fmt::format("{}: leaves a hole of {} bytes before it", where, range.begin - reached));
    view.bytes = data.subspan(range.begin, range.end - range.begin);
    reached = range.end;
    content.tensors.push_back(std::move(view));
  }
  if (reached != data.size())
    refuse(fmt::format("{} bytes behind the last tensor belong to none", data.size() - reached));
  return content;
}

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status{};
  if (fd < 0 || ::fstat(fd, &status) != 0) {
    const int error = errno;
    if (fd >= 0) ::close(fd);
    refuse(fmt::format("{}: cannot be opened: {}", path, std::strerror(error)));
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(fd);
    refuse(fmt::format("{}: is no file", path));
  }
  if (status.st_size > 0) {
    const auto size = static_cast<std::size_t>(status.st_size);
    void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapped != MAP_FAILED) bytes_ = {static_cast<const std::byte*>(mapped), size};
  }
  ::close(fd);
  if (status.st_size > 0 && bytes_.empty())
    refuse(fmt::format("{}: cannot be mapped: {}", path, std::strerror(errno)));
  try {
    content_ = parse_safetensors(bytes_);
  } catch (const UsageError& error) {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
    refuse(fmt::format("{}: {}", path, error.what()));
  }
}

SafetensorsFile::~SafetensorsFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

const TensorView& SafetensorsFile::required(std::string_view name) const {
  if (const TensorView* found = find(name)) return *found;
  std::vector<std::string> names;
  for (const TensorView& t : tensors()) names.push_back(t.name);
  refuse(fmt::format("{}: has no tensor {}; it has {}", path_, one_line(name),
                     names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

void write_safetensors(const std::string& path, const Metadata& metadata,
                       const std::vector<TensorSource>& tensors) {
  std::vector<const TensorSource*> order;
  order.reserve(tensors.size());
  for (const std::size_t bytes : {8U, 4U, 2U, 1U})
    for (const TensorSource& t : tensors)
      if (element_bytes(t.dtype) == bytes) order.push_back(&t);
  Json header = Json::object();
  if (!metadata.empty()) header[metadata_key] = metadata;
  std::uint64_t end = 0;
  for (const TensorSource* t : order) {
    const std::uint64_t begin = end;
    std::uint64_t bytes = element_bytes(t->dtype);
    for (const std::uint64_t extent : t->shape) bytes *= extent;
    const std::uint64_t given = t->sparse != nullptr ? t->sparse->size : t->bytes.size();
    if (bytes != given || header.contains(t->name))
      throw std::logic_error(fmt::format("tensor {} {}: {} bytes given", t->name, shown(t->shape), given));
    end += bytes;
    header[t->name] = {{"dtype", name(t->dtype)}, {"shape", t->shape}, {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string length(length_bytes, '\0');
  for (std::size_t i = 0; i < length_bytes; ++i)
    length[i] = static_cast<char>(text.size() >> (8 * i) & 0xffU);

  Writer file(path);
  text.insert(0, length);
  file.put(0, std::as_bytes(std::span(text)));
  std::uint64_t at = text.size();
  for (const TensorSource* t : order) {
    if (t->sparse == nullptr) {
      file.put(at, t->bytes);
      at += t->bytes.size();
      continue;
    }
    for (const auto& extent : t->sparse->extents) file.put(at + extent.offset, extent.bytes);
    at += t->sparse->size;
  }
  file.finish(at);
}

}  // namespace attest::fuzz::exchange
