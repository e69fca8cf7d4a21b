// SPDX-License-Identifier: MIT
//
// The simulator through its HIP functions: compiled kernels, error codes, bad input.
#include <hip/hip_runtime_api.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "device/simulator/hip_api/simulator.h"

namespace {

std::vector<char> file_bytes(const char* path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  REQUIRE(in);
  std::vector<char> bytes(static_cast<std::size_t>(in.tellg()));
  in.seekg(0);
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

template <typename T>
class DeviceVector {
 public:
  explicit DeviceVector(const std::vector<T>& values, const char* name = nullptr) : size_(values.size()) {
    REQUIRE(hipMalloc(reinterpret_cast<void**>(&data), size_ * sizeof(T)) == hipSuccess);
    REQUIRE(hipMemcpy(data, values.data(), size_ * sizeof(T), hipMemcpyHostToDevice) == hipSuccess);
    if (name != nullptr) attest_sim_name_range(data, size_ * sizeof(T), name);
  }
  ~DeviceVector() { (void)hipFree(data); }
  DeviceVector(const DeviceVector&) = delete;
  DeviceVector& operator=(const DeviceVector&) = delete;
  [[nodiscard]] std::vector<T> host() const {
    std::vector<T> values(size_);
    REQUIRE(hipMemcpy(values.data(), data, size_ * sizeof(T), hipMemcpyDeviceToHost) == hipSuccess);
    return values;
  }
  T* data = nullptr;

 private:
  std::size_t size_;
};

struct Loaded {
  explicit Loaded(const char* path = ATTEST_TEST_HIP_KERNELS) {
    REQUIRE(hipModuleLoad(&module, path) == hipSuccess);
  }
  ~Loaded() { (void)hipModuleUnload(module); }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  hipFunction_t function(const char* name) {
    hipFunction_t f = nullptr;
    REQUIRE(hipModuleGetFunction(&f, module, name) == hipSuccess);
    return f;
  }
  template <typename... Arguments>
  hipError_t launch(const char* name, unsigned blocks, unsigned threads, Arguments... arguments) {
    std::array<void*, sizeof...(Arguments)> parameters{&arguments...};
    return hipModuleLaunchKernel(function(name), blocks, 1, 1, threads, 1, 1, 0, nullptr, parameters.data(),
                                 nullptr);
  }
  hipModule_t module = nullptr;
};

}  // namespace

TEST_CASE("compiled kernels give the right answers") {
  Loaded code;
  std::vector<float> x(1000), y(1000);
  std::iota(x.begin(), x.end(), 0.0f);
  std::iota(y.begin(), y.end(), 0.5f);
  const DeviceVector dx(x), dy(y);
  REQUIRE(code.launch("saxpy", 4, 256, 2.0f, dx.data, dy.data, 1000) == hipSuccess);
  REQUIRE(hipDeviceSynchronize() == hipSuccess);
  CHECK(attest_sim_instructions() > 16);
  const auto result = dy.host();
  for (std::size_t i = 0; i < 1000; ++i) REQUIRE(result[i] == y[i] + 2 * x[i]);

  std::vector<int> numbers(256 * 5);
  std::iota(numbers.begin(), numbers.end(), 0);
  const DeviceVector in(numbers), sums(std::vector<int>(5));
  REQUIRE(code.launch("block_sum", 5, 256, in.data, sums.data) == hipSuccess);
  for (int b = 0; b < 5; ++b) CHECK(sums.host()[static_cast<std::size_t>(b)] == 256 * 256 * b + 255 * 128);

  std::vector<unsigned char> letters(3000);
  for (std::size_t i = 0; i < letters.size(); ++i) letters[i] = static_cast<unsigned char>(i * i % 251);
  const DeviceVector text(letters);
  const DeviceVector bins(std::vector<unsigned>(256));
  REQUIRE(code.launch("histogram", 12, 256, text.data, bins.data, 3000u) == hipSuccess);
  std::vector<unsigned> expected(256);
  for (const unsigned char c : letters) ++expected[c];
  CHECK(bins.host() == expected);

  std::vector<unsigned> order(16);
  for (unsigned k = 0; k < 16; ++k) order[k] = k * 5 % 16;
  const DeviceVector permutation(order);
  const DeviceVector out(std::vector<unsigned long>(64));
  REQUIRE(code.launch("reorder", 1, 64, permutation.data, out.data, 40u) == hipSuccess);
  for (unsigned t = 0; t < 64; ++t) {
    unsigned long values[16], sum = 0;
    for (unsigned k = 0; k < 16; ++k) values[order[k]] = t * 1000000007ul + k;
    for (unsigned k = 0; k < 40; ++k) sum = sum * 31 + values[k % 16] / (k + 3);
    REQUIRE(out.host()[t] == sum);
  }

  const DeviceVector looked_up(std::vector<int>(64));
  REQUIRE(code.launch("through_pointer", 1, 64, looked_up.data) == hipSuccess);
  for (int t = 0; t < 64; ++t) REQUIRE(looked_up.host()[static_cast<std::size_t>(t)] == 10 * (t % 4 + 1));
}

TEST_CASE("arguments as one buffer") {
  Loaded code;
  const DeviceVector x(std::vector<float>(64, 3.0f)), y(std::vector<float>(64, 1.0f));
  struct {
    float a;
    const float* x;
    float* y;
    int n;
  } block{2.0f, x.data, y.data, 64};
  std::size_t size = sizeof block;
  void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &block, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   HIP_LAUNCH_PARAM_END};
  REQUIRE(hipModuleLaunchKernel(code.function("saxpy"), 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, extra) ==
          hipSuccess);
  CHECK(y.host() == std::vector<float>(64, 7.0f));
  CHECK(hipModuleLaunchKernel(code.function("saxpy"), 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, nullptr) ==
        hipErrorInvalidValue);
}

TEST_CASE(
    "a faulting kernel: the launch and the next synchronisation say so, the report says where; then life "
    "goes on") {
  Loaded code;
  const DeviceVector x(std::vector<float>(100, 1.0f), "x"), y(std::vector<float>(99, 1.0f), "y");
  CHECK(code.launch("saxpy", 1, 128, 2.0f, x.data, y.data, 100) == hipErrorLaunchFailure);
  const auto report = nlohmann::json::parse(attest_sim_last_report());
  CHECK(report["kind"] == "memory_read");
  CHECK(report["kernel"] == "saxpy");
  CHECK(report["workgroup"] == std::vector<int>{0, 0, 0});
  CHECK(report["wave"] == 1);
  CHECK(report["lane"] == 35);
  CHECK(report["address"] == reinterpret_cast<std::uint64_t>(y.data + 99));
  CHECK(report["disassembly"].get<std::string>().starts_with("global_load_dword"));
  CHECK(report["message"].get<std::string>().find("0 bytes after the end of y (396 bytes") !=
        std::string::npos);
  CHECK(report["pc"].get<std::uint64_t>() > 0);
  CHECK(attest_sim_instructions() == 0);
  CHECK(hipPeekAtLastError() == hipErrorLaunchFailure);
  CHECK(hipDeviceSynchronize() == hipErrorLaunchFailure);
  CHECK(hipDeviceSynchronize() == hipSuccess);
  CHECK(hipGetLastError() == hipErrorLaunchFailure);
  CHECK(hipGetLastError() == hipSuccess);
  CHECK(code.launch("saxpy", 1, 128, 2.0f, x.data, y.data, 99) == hipSuccess);
  CHECK(std::string(attest_sim_last_report()).empty());
  CHECK(y.host() == std::vector<float>(99, 3.0f));
}

TEST_CASE("branches are told by kernel, once, and not those of a launch that faulted") {
  Loaded code;
  const DeviceVector x(std::vector<float>(100, 1.0f), "x"), y(std::vector<float>(100, 1.0f), "y");
  const auto ways = [&](int n) {
    CHECK(code.launch("saxpy", 1, 64, 2.0f, x.data, y.data, n) == hipSuccess);
    return nlohmann::json::parse(attest_sim_branches());
  };
  ways(0);
  const auto none = ways(0), some = ways(30);
  CHECK(none.size() == 1);
  REQUIRE(none.at("saxpy").get<std::string>().size() == some.at("saxpy").get<std::string>().size());
  CHECK(none != some);
  CHECK(nlohmann::json::parse(attest_sim_branches()).empty());
  CHECK(code.launch("saxpy", 1, 128, 2.0f, x.data, y.data, 101) == hipErrorLaunchFailure);
  CHECK(nlohmann::json::parse(attest_sim_branches()).empty());
  (void)hipGetLastError();
  (void)hipDeviceSynchronize();
  (void)hipGetLastError();
  CHECK(ways(30) == some);
}

TEST_CASE("an error left by a launch nobody looked at does not outlive hipGetLastError") {
  Loaded code;
  CHECK(code.launch("saxpy", 1, 64, 2.0f, static_cast<float*>(nullptr), static_cast<float*>(nullptr), 64) ==
        hipErrorLaunchFailure);
  CHECK(std::string(attest_sim_last_report()).find("near the null address") != std::string::npos);
  CHECK(hipGetLastError() == hipErrorLaunchFailure);
  CHECK(hipDeviceSynchronize() == hipSuccess);
}

TEST_CASE("runaway kernels time out") {
  Loaded code(ATTEST_TEST_KERNELS);
  attest_sim_set_budget(5000);
  CHECK(code.launch("endless", 1, 64) == hipErrorLaunchTimeOut);
  CHECK(nlohmann::json::parse(attest_sim_last_report())["kind"] == "instruction_budget");
  CHECK(hipGetLastError() == hipErrorLaunchTimeOut);
  attest_sim_set_budget(1000000000);
}

TEST_CASE("launches no device could do") {
  Loaded code;
  const DeviceVector x(std::vector<float>(64, 3.0f));
  CHECK(code.launch("saxpy", 1, 1025, 2.0f, x.data, x.data, 64) == hipErrorInvalidConfiguration);
  CHECK(nlohmann::json::parse(attest_sim_last_report())["kind"] == "launch");
  CHECK(code.launch("saxpy", 0, 64, 2.0f, x.data, x.data, 64) == hipErrorInvalidConfiguration);
  CHECK(hipModuleLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) ==
        hipErrorInvalidHandle);
  CHECK(hipDeviceSynchronize() == hipSuccess);
  (void)hipGetLastError();
}

TEST_CASE("code objects from memory: as they are, cut off, foreign, nonsense") {
  std::vector<char> bytes = file_bytes(ATTEST_TEST_HIP_KERNELS);
  hipModule_t module = nullptr;
  REQUIRE(hipModuleLoadData(&module, bytes.data()) == hipSuccess);
  hipFunction_t f = nullptr;
  CHECK(hipModuleGetFunction(&f, module, "saxpy") == hipSuccess);
  CHECK(hipModuleGetFunction(&f, module, "nothing") == hipErrorNotFound);
  hipDeviceptr_t variable = nullptr;
  std::size_t size = 0;
  CHECK(hipModuleGetGlobal(&variable, &size, module, "table") == hipSuccess);
  CHECK(size == 16);
  int third = 0;
  CHECK(hipMemcpyDtoH(&third, static_cast<char*>(variable) + 8, 4) == hipSuccess);
  CHECK(third == 30);
  CHECK(hipModuleUnload(module) == hipSuccess);
  CHECK(hipModuleUnload(module) == hipErrorInvalidHandle);
  CHECK(hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == hipErrorInvalidHandle);

  std::vector<char> cut(bytes.begin(), bytes.begin() + 700);
  cut.resize(4096);
  CHECK(hipModuleLoadData(&module, cut.data()) != hipSuccess);
  bytes[48] = 0x4f;
  CHECK(hipModuleLoadData(&module, bytes.data()) == hipErrorNoBinaryForGpu);
  CHECK(nlohmann::json::parse(attest_sim_last_report())["message"] ==
        "code object is for gfx950, the simulator runs gfx942");
  const std::vector<char> nonsense(4096, 'x');
  CHECK(hipModuleLoadData(&module, nonsense.data()) == hipErrorInvalidImage);
  CHECK(hipModuleLoadData(&module, nullptr) == hipErrorInvalidValue);
  CHECK(hipModuleLoad(&module, "/nonexistent") == hipErrorFileNotFound);
  CHECK(hipModuleLoad(&module, "/proc/self/exe") == hipErrorInvalidImage);
  (void)hipGetLastError();
}

TEST_CASE("copies and fills stay inside allocations") {
  DeviceVector<int> a({1, 2, 3, 4}), b({5, 6, 7, 8});
  CHECK(hipMemcpyDtoD(b.data, a.data, 8) == hipSuccess);
  CHECK(b.host() == std::vector<int>{1, 2, 7, 8});
  CHECK(hipMemcpy(b.data, a.data, 17, hipMemcpyDeviceToDevice) == hipErrorInvalidValue);
  int host[4] = {};
  CHECK(hipMemcpy(host, a.data + 3, 8, hipMemcpyDeviceToHost) == hipErrorInvalidValue);
  CHECK(hipMemcpy(host, a.data, 16, hipMemcpyHostToDevice) == hipErrorInvalidValue);
  CHECK(hipMemcpy(host, a.data, 16, hipMemcpyDefault) == hipSuccess);
  CHECK(host[3] == 4);
  CHECK(hipMemset(a.data, 0xff, 6) == hipSuccess);
  CHECK(a.host() == std::vector<int>{-1, 0xffff, 3, 4});
  CHECK(hipMemsetD32(a.data + 1, 9, 3) == hipSuccess);
  CHECK(a.host() == std::vector<int>{-1, 9, 9, 9});
  CHECK(hipMemsetD32(a.data + 1, 9, 4) == hipErrorInvalidValue);
  CHECK(hipMemset(host, 0, 4) == hipErrorInvalidValue);
  CHECK(hipFree(a.data + 1) == hipErrorInvalidValue);
  CHECK(hipFree(nullptr) == hipSuccess);
  (void)hipGetLastError();
}

TEST_CASE("freed memory is recognised") {
  Loaded code;
  const DeviceVector y(std::vector<float>(64, 3.0f));
  float* x = nullptr;
  REQUIRE(hipMalloc(reinterpret_cast<void**>(&x), 256) == hipSuccess);
  attest_sim_name_range(x, 256, "weights");
  REQUIRE(hipFree(x) == hipSuccess);
  CHECK(hipFree(x) == hipErrorInvalidValue);
  CHECK(code.launch("saxpy", 1, 64, 2.0f, x, y.data, 64) == hipErrorLaunchFailure);
  CHECK(std::string(attest_sim_last_report()).find("in freed buffer weights") != std::string::npos);
  (void)hipGetLastError();
}

TEST_CASE("guard zones around a named range are out of bounds for kernels, in bounds for the host") {
  Loaded code;
  DeviceVector<float> pool(std::vector<float>(192, 1.0f));
  attest_sim_name_range(pool.data + 64, 64 * sizeof(float), "y");
  CHECK(code.launch("saxpy", 1, 64, 2.0f, pool.data + 64, pool.data + 64, 64) == hipSuccess);
  CHECK(code.launch("saxpy", 1, 64, 2.0f, pool.data + 64, pool.data + 65, 64) == hipErrorLaunchFailure);
  (void)hipGetLastError();
  const auto values = pool.host();
  CHECK(values[63] == 1.0f);
  CHECK(values[64] == 3.0f);
  CHECK(values[128] == 1.0f);
}

TEST_CASE("devices are separate") {
  int count = 0;
  REQUIRE(hipGetDeviceCount(&count) == hipSuccess);
  REQUIRE(count >= 2);
  CHECK(hipSetDevice(count) == hipErrorInvalidDevice);
  CHECK(hipSetDevice(-1) == hipErrorInvalidDevice);
  const DeviceVector x(std::vector<float>(64, 3.0f));
  const std::string before = attest_sim_last_report();
  REQUIRE(hipSetDevice(1) == hipSuccess);
  {
    Loaded code;
    const DeviceVector y(std::vector<float>(64, 1.0f));
    CHECK(code.launch("saxpy", 1, 64, 2.0f, x.data, y.data, 64) == hipErrorLaunchFailure);
    CHECK(std::string(attest_sim_last_report()) != before);
    REQUIRE(hipSetDevice(0) == hipSuccess);
    CHECK(std::string(attest_sim_last_report()) == before);
    // A copy finds its devices by the pointers.
    CHECK(hipMemcpyDtoD(y.data, x.data, 256) == hipSuccess);
    CHECK(y.host() == std::vector<float>(64, 3.0f));
  }
  int ordinal = -1;
  CHECK(hipGetDevice(&ordinal) == hipSuccess);
  CHECK(ordinal == 0);
  (void)hipGetLastError();
}

TEST_CASE("properties, attributes, names") {
  hipDeviceProp_t p;
  REQUIRE(hipGetDeviceProperties(&p, 0) == hipSuccess);
  CHECK(std::string(p.gcnArchName).starts_with("gfx942"));
  CHECK(p.warpSize == 64);
  int value = 0;
  CHECK(hipDeviceGetAttribute(&value, hipDeviceAttributeMultiprocessorCount, 0) == hipSuccess);
  CHECK(value == p.multiProcessorCount);
  CHECK(hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 99) == hipErrorInvalidDevice);
  char name[8];
  CHECK(hipDeviceGetName(name, sizeof name, 0) == hipSuccess);
  CHECK(std::string(name) == "AMD Ins");
  CHECK(std::string(hipGetErrorName(hipErrorLaunchFailure)) == "hipErrorLaunchFailure");
  CHECK(std::string(hipGetErrorString(hipErrorOutOfMemory)) == "out of memory");
  void* pointer = nullptr;
  CHECK(hipMalloc(&pointer, p.totalGlobalMem + 1) == hipErrorOutOfMemory);
  (void)hipGetLastError();
}

TEST_CASE("streams") {
  hipStream_t stream = nullptr;
  REQUIRE(hipStreamCreate(&stream) == hipSuccess);
  CHECK(hipStreamSynchronize(stream) == hipSuccess);
  int value = 5;
  const DeviceVector x(std::vector<int>{0});
  CHECK(hipMemcpyAsync(x.data, &value, 4, hipMemcpyHostToDevice, stream) == hipSuccess);
  CHECK(x.host()[0] == 5);
  CHECK(hipStreamDestroy(stream) == hipSuccess);
  CHECK(hipStreamDestroy(stream) == hipErrorInvalidHandle);
  CHECK(hipMemcpyAsync(x.data, &value, 4, hipMemcpyHostToDevice, stream) == hipErrorInvalidHandle);
  (void)hipGetLastError();
}
