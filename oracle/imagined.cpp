// SPDX-License-Identifier: MIT
#include "oracle/imagined.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

namespace attest::oracle {
namespace {

using Eigen::Index;
using reference::row_width;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double log2_e = 1.4426950408889634;
constexpr int least_beyond = 160;  // keys past the end that are worth a look: more than the largest tile
constexpr Index longest_tile_walk = 16384;
constexpr double most_left_over = 0.4;  // of the squared error, once a cause is right
constexpr std::array<int, 4> tile_sizes = {16, 32, 64, 128};

Matrix sample_columns(const Matrix& keys, const std::vector<int>& columns) {
  Matrix values(keys.rows(), static_cast<Index>(columns.size()));
  for (Index j = 0; j < keys.rows(); ++j)
    for (std::size_t c = 0; c < columns.size(); ++c) values(j, static_cast<Index>(c)) = keys(j, columns[c]);
  return values;
}

/// Which split each key belongs to, by one way of cutting.
struct Partition {
  std::string text;
  std::function<int(Index place)> split_of;
};

std::vector<Partition> partitions(Index walk, int splits, int page_size) {
  std::vector<Partition> found;
  std::vector<int> units(tile_sizes.begin(), tile_sizes.end());
  units.push_back(1);
  if (std::find(units.begin(), units.end(), page_size) == units.end()) units.push_back(page_size);
  const auto S = Index{splits};
  for (const int unit : units) {
    const Index tiles = (walk + unit - 1) / unit;
    const Index each = std::max<Index>(1, (tiles + S - 1) / S);
    found.push_back({fmt::format("{} contiguous splits in units of {}", splits, unit),
                     [unit, each](Index place) { return static_cast<int>(place / unit / each); }});
    if (tiles % S != 0)
      found.push_back(
          {fmt::format("{} balanced splits in units of {}", splits, unit), [unit, tiles, S](Index place) {
             const Index tile = place / unit;
             Index s = (tile * S) / tiles;
             while (s + 1 < S && (s + 1) * tiles / S <= tile) ++s;
             return static_cast<int>(s);
           }});
    if (unit > 1)
      found.push_back({fmt::format("{} strided splits of tiles of {}", splits, unit),
                       [unit, S](Index place) { return static_cast<int>(place / unit % S); }});
  }
  return found;
}

/// Leaves out (offset -inf) or counts twice (ln 2) the keys at whose places `in_group` holds.
std::optional<Imagined> with_group(const Witness& w, const reference::AttentionScales& scales, double offset,
                                   const std::function<bool(Index)>& in_group) {
  Imagined imagined = faithful(w, scales);
  imagined.offset.assign(static_cast<std::size_t>(imagined.visible), 0.0);
  bool any = false, all = true;
  for (Index j = 0; j < imagined.visible; ++j) {
    const bool in = in_group(w.place(j));
    if (in) imagined.offset[static_cast<std::size_t>(j)] = offset;
    any |= in;
    all &= in;
  }
  if (!any || (all && offset > 0)) return std::nullopt;
  if (all) {
    imagined.visible = 0;
    imagined.offset.clear();
  }
  return imagined;
}

/// Collects defects; all of them share launch, rules and profile. They outlive it, so none may hold on to it.
class Catalogue {
 public:
  Catalogue(const MlaLaunch& launch, const Rules& rules, const PrecisionProfile& profile, bool over_reads)
      : launch_(launch), scales_(launch.scales), rules_(rules), profile_(profile), over_reads_(over_reads) {
    rules_.statistics = false;
    for (const MlaGroup& group : launch.problem.groups) causal_ = causal_ || group.causal;
  }

  std::vector<Defect> all() {
    query_of_another_position();
    other_keys(false);
    causal_bounds_too_far();
    other_keys(true);
    merges();
    scales();
    last_split();
    partial_last_tile();
    causal_bounds_too_short();
    splits();
    past_the_end();
    first_and_last_tile();
    any_tile();
    return std::move(defects_);
  }

 private:
  using Build = std::function<std::optional<Imagined>(const Witness&, int)>;

  void add(const char* text, std::function<int(const Witness&)> variants, Build build,
           std::function<std::string(const Witness&, int)> detail, bool lse_follows = true) {
    defects_.push_back({text, std::move(variants),
                        [this_rules = rules_, &profile = profile_, build = std::move(build), lse_follows](
                            const Witness& w, int variant, bool with_lse, Fit* fit) {
                          const std::optional<Imagined> imagined = build(w, variant);
                          return imagined &&
                                 explains(w, *imagined, this_rules, profile, with_lse && lse_follows, fit);
                        },
                        std::move(detail)});
  }

  static std::function<int(const Witness&)> count(int n) {
    return [n](const Witness&) { return n; };
  }

  // Row i of q replaced by another of the same request and head, with row i's own keys.
  void query_of_another_position() {
    const auto requests = launch_.problem.requests;
    defects_.push_back(
        {"query rows identical",
         [requests](const Witness& w) {
           return requests[static_cast<std::size_t>(w.home->request.group.request)].q_len;
         },
         [&launch = launch_, rules = rules_, &profile = profile_, scales = scales_](const Witness& w, int p,
                                                                                    bool with_lse, Fit* fit) {
           if (p == w.position() || w.visible() <= 0) return false;
           const Index row = w.in_launch + Index{p - w.position()} * w.home->request.heads;
           const Vector dots = w.home->keys.topRows(w.visible()) * launch.q_rows(row, 1).row(0).transpose();
           Imagined imagined = faithful(w, scales);
           imagined.dots = &dots;
           return explains(w, imagined, rules, profile, with_lse, fit);
         },
         [](const Witness& w, int p) {
           return fmt::format("position {} of request {} was computed with the query of position {}",
                              w.position(), w.home->request.group.request, p);
         }});
  }

  /// A row sees `visible` keys in place of its own number; nullopt where that does not apply.
  void other_bound(const char* text, const std::function<std::optional<Index>(const Witness&)>& visible) {
    const auto build = [scales = scales_, visible](const Witness& w, int) -> std::optional<Imagined> {
      const std::optional<Index> wanted = visible(w);
      if (!wanted || *wanted == w.visible() || *wanted < 0 || *wanted > w.home->request.kv_len)
        return std::nullopt;
      Imagined imagined = faithful(w, scales);
      imagined.visible = *wanted;
      return imagined;
    };
    add(text, count(1), build, [visible](const Witness& w, int) {
      return fmt::format("position {} of {} sees {} keys, not {}", w.position(), w.home->request.q_len,
                         visible(w).value_or(0), w.visible());
    });
    defects_.back().refuted_by = [build, rules = rules_, &profile = profile_](const Witness& w,
                                                                              bool with_lse) {
      const std::optional<Imagined> imagined = build(w, 0);
      return imagined && !explains(w, *imagined, rules, profile, with_lse);
    };
  }

  // A bound that is too far within the request. Beyond its end it is an over-read, whatever the cause; and
  // where rows that see all keys hold NaN, that is what happened.
  void causal_bounds_too_far() {
    if (over_reads_) return front_rows_not_masked();
    // From the bound itself, which may lie below 0: a row two or more in front of the first key would stay
    // empty.
    other_bound("causal bound one too far", [](const Witness& w) {
      const MlaGroup& group = w.home->request.group;
      const Index bound =
          group.causal ? group.kv_len - group.q_len + static_cast<int>(w.row / w.home->request.heads) + 1
                       : group.kv_len;
      return bound < 0 ? std::nullopt : std::optional<Index>(bound + 1);
    });
    front_rows_not_masked();
    if (!causal_) return;
    other_bound("causal mask missing",
                [](const Witness& w) { return std::optional<Index>(w.home->request.kv_len); });
    other_bound("causal mask aligned to the top left",
                [](const Witness& w) { return std::optional<Index>(w.position() + 1); });
  }

  // kv_len - q_len + position compared without a sign: a row in front of the first key sees all that its tile
  // walks. With q_len = kv_len + 1 no different from a bound one too far.
  void front_rows_not_masked() {
    const auto keys = [](const Witness& w, int variant) { return w.home->request.kv_len - variant; };
    add(
        "rows in front of the first key not masked",
        [](const Witness& w) { return w.visible() > 0 ? 0 : w.home->request.kv_len; },
        [scales = scales_, keys](const Witness& w, int variant) -> std::optional<Imagined> {
          if (w.visible() > 0 || keys(w, variant) <= 0) return std::nullopt;
          Imagined imagined = faithful(w, scales);
          imagined.visible = keys(w, variant);
          return imagined;
        },
        [keys](const Witness& w, int variant) {
          return fmt::format("position {} of {} sees {} keys, not 0", w.position(), w.home->request.q_len,
                             keys(w, variant));
        });
  }

  void causal_bounds_too_short() {
    other_bound("causal bound one too short", [](const Witness& w) {
      return w.visible() < 1 ? std::nullopt : std::optional<Index>(w.visible() - 1);
    });
    if (!causal_) return;
    other_bound("causal bound of the first position for all", [](const Witness& w) {
      return std::optional<Index>(std::max(0, w.home->request.kv_len - w.home->request.q_len + 1));
    });
  }

  void scales() {
    struct Factor {
      const char* text;
      double score, out;
    };
    const double kv = launch_.scales.kv_scale, q = launch_.scales.q_scale;
    std::vector<Factor> factors;
    if (kv != 1) {
      factors.push_back({"kv scale missing", 1 / kv, 1 / kv});
      factors.push_back({"kv scale missing", 1, 1 / kv});
      factors.push_back({"kv scale missing", 1 / kv, 1});
      factors.push_back({"kv scale applied twice", kv, kv});
      factors.push_back({"kv scale applied twice", 1, kv});
      factors.push_back({"kv scale applied twice", kv, 1});
    }
    if (q != 1) {
      factors.push_back({"q scale missing", 1 / q, 1});
      factors.push_back({"q scale applied twice", q, 1});
    }
    if (kv != 1 || q != 1) factors.push_back({"q and kv scale missing", 1 / (q * kv), 1 / kv});
    const bool kv8 = launch_.problem.fp8_cache;
    const bool q8 = launch_.problem.fp8_q;
    if (kv8)
      for (const double f : {2.0, 0.5}) {
        factors.push_back({"fp8 decoded with the other exponent bias", f, f});
        if (q8) factors.push_back({"fp8 decoded with the other exponent bias", f * f, f});
      }
    const double width_scale = 1 / std::sqrt(static_cast<double>(row_width));
    if (std::abs(launch_.scales.sm_scale / width_scale - 1) > 1e-6)
      factors.push_back({"softmax scale of the wrong width", width_scale / launch_.scales.sm_scale, 1});
    factors.push_back({"softmax scale missing", 1 / launch_.scales.sm_scale, 1});
    factors.push_back({"exp taken for exp2", 1 / log2_e, 1});
    factors.push_back({"exp2 taken for exp", log2_e, 1});
    for (const Factor& f : factors)
      add(
          f.text, count(1),
          [scales = scales_, f](const Witness& w, int) -> std::optional<Imagined> {
            Imagined imagined = faithful(w, scales);
            imagined.score_scale *= f.score;
            imagined.out_scale *= f.out;
            return imagined;
          },
          [f](const Witness&, int) {
            return fmt::format("scores times {:.6g}, output times {:.6g}", f.score, f.out);
          });
  }

  // The split with the highest number. Where it is a partial last tile as well, the two defects cannot be
  // told apart; of all results with a forgotten split such are the greater part.
  void last_split() {
    const int splits = launch_.problem.num_splits;
    if (splits < 2) return;
    add(
        "one split missing", count(static_cast<int>(tile_sizes.size())),
        [scales = scales_, splits](const Witness& w, int variant) -> std::optional<Imagined> {
          const Index unit = tile_sizes[static_cast<std::size_t>(variant)];
          const Index tiles = (w.home->walk + unit - 1) / unit;
          const Index first = (tiles + splits - 1) / splits * (splits - 1) * unit;
          return with_group(w, scales, -infinity, [first](Index j) { return j >= first; });
        },
        [splits](const Witness&, int variant) {
          return fmt::format("the last of {} in units of {}", splits,
                             tile_sizes[static_cast<std::size_t>(variant)]);
        });
  }

  // A number of tiles that was rounded down. A full last tile may be a split as well: splits are asked first.
  void partial_last_tile() { last_tile(true); }

  void first_and_last_tile() {
    last_tile(false);
    add(
        "first tile missing", count(static_cast<int>(tile_sizes.size())),
        [scales = scales_](const Witness& w, int variant) {
          const Index tile = tile_sizes[static_cast<std::size_t>(variant)];
          return with_group(w, scales, -infinity, [tile](Index j) { return j < tile; });
        },
        [](const Witness&, int variant) {
          return fmt::format("a tile has {} keys", tile_sizes[static_cast<std::size_t>(variant)]);
        });
  }

  void last_tile(bool partial) {
    add(
        "last tile missing", count(2 * static_cast<int>(tile_sizes.size())),
        [scales = scales_, partial](const Witness& w, int variant) -> std::optional<Imagined> {
          const Index tile = tile_sizes[static_cast<std::size_t>(variant / 2)];
          const Index end = variant % 2 == 0 ? Index{w.home->walk} : Index{w.walked()};
          if ((end % tile != 0) != partial) return std::nullopt;
          const Index first = (end - 1) / tile * tile;
          return with_group(w, scales, -infinity, [first](Index j) { return j >= first; });
        },
        [](const Witness&, int variant) {
          return fmt::format("a tile has {} keys", tile_sizes[static_cast<std::size_t>(variant / 2)]);
        });
  }

  /// Attention over the rows that an addressing defect of this op would read.
  void other_keys(bool after_bounds) {
    for (const OtherKeys& other : launch_.problem.keys->other_keys()) {
      if (other.after_bounds != after_bounds) continue;
      defects_.push_back({other.text, count(1),
                          [rules = rules_, &profile = profile_, scales = scales_, rows = other.rows](
                              const Witness& w, int, bool with_lse, Fit* fit) {
                            const std::optional<Matrix> keys = rows(w.home->request.index, w.visible());
                            if (!keys) return false;
                            const Vector dots = *keys * w.home->request.q.row(w.row).transpose();
                            const Matrix values = sample_columns(*keys, w.columns);
                            Imagined imagined = faithful(w, scales);
                            imagined.visible = keys->rows();
                            imagined.dots = &dots;
                            imagined.values = &values;
                            const Vector norms = row_norms(*keys);
                            imagined.key_norms = &norms;
                            return explains(w, imagined, rules, profile, with_lse, fit);
                          },
                          [detail = other.detail](const Witness&, int) { return detail; }});
    }
  }

  // Partials are weighted by L^beta in place of L = exp(lse): log2 e when an lse in base 2 is merged as a
  // natural one, ln 2 the other way round, 0 when the lse is not looked at. The keys of a split then weigh
  // L^(beta - 1) more, and the merged lse is that of these weights.
  void merges() {
    const int splits = launch_.problem.num_splits;
    if (splits < 2) return;
    const int page_size = launch_.problem.page_size;
    const int ways = static_cast<int>(partitions(1024, splits, page_size).size()) + 6;
    const auto partition_of = [splits, page_size](const Witness& w, int way) -> std::optional<Partition> {
      auto found = partitions(w.home->walk, splits, page_size);
      if (way >= static_cast<int>(found.size())) return std::nullopt;
      return std::move(found[static_cast<std::size_t>(way)]);
    };
    const auto merged_with = [&](const char* text, double beta, bool lse_follows) {
      add(
          text, count(ways),
          [scales = scales_, partition_of, splits, beta](const Witness& w,
                                                         int way) -> std::optional<Imagined> {
            const auto partition = partition_of(w, way);
            if (!partition) return std::nullopt;
            Imagined imagined = faithful(w, scales);
            std::vector<double> max(static_cast<std::size_t>(splits), -infinity), sum(max.size(), 0.0);
            std::vector<std::size_t> split(static_cast<std::size_t>(imagined.visible));
            for (Index j = 0; j < imagined.visible; ++j) {
              const auto s =
                  static_cast<std::size_t>(std::clamp(partition->split_of(w.place(j)), 0, splits - 1));
              split[static_cast<std::size_t>(j)] = s;
              max[s] = std::max(max[s], imagined.score_scale * w.dots[j]);
            }
            for (Index j = 0; j < imagined.visible; ++j) {
              const std::size_t s = split[static_cast<std::size_t>(j)];
              sum[s] += std::exp(imagined.score_scale * w.dots[j] - max[s]);
            }
            imagined.offset.resize(split.size());
            for (std::size_t j = 0; j < split.size(); ++j)
              imagined.offset[j] = (beta - 1) * (max[split[j]] + std::log(sum[split[j]]));
            return imagined;
          },
          [partition_of](const Witness& w, int way) {
            const auto partition = partition_of(w, way);
            return partition ? partition->text : std::string();
          },
          lse_follows);
    };
    merged_with("lse base 2 merged as natural", log2_e, true);
    merged_with("natural lse merged as base 2", 1 / log2_e, false);
    merged_with("splits merged without their lse", 0, false);
  }

  void splits() {
    const int splits = launch_.problem.num_splits;
    if (splits < 2) return;
    const int page_size = launch_.problem.page_size;
    const int ways = static_cast<int>(partitions(1024, splits, page_size).size()) + 6;
    const auto partition_of = [splits, page_size](const Witness& w, int way) -> std::optional<Partition> {
      auto found = partitions(w.home->walk, splits, page_size);
      if (way >= static_cast<int>(found.size())) return std::nullopt;
      return std::move(found[static_cast<std::size_t>(way)]);
    };
    const auto split_defect = [&](const char* text, double offset) {
      add(
          text, count(ways * splits),
          [scales = scales_, partition_of, splits, offset](const Witness& w,
                                                           int variant) -> std::optional<Imagined> {
            const auto partition = partition_of(w, variant / splits);
            if (!partition) return std::nullopt;
            const int split = variant % splits;
            return with_group(w, scales, offset,
                              [&](Index place) { return partition->split_of(place) == split; });
          },
          [partition_of, splits](const Witness& w, int variant) {
            const auto partition = partition_of(w, variant / splits);
            return fmt::format("split {} of {}", variant % splits, partition ? partition->text : "?");
          });
    };
    split_defect("one split missing", -infinity);
    split_defect("one split counted twice", std::log(2.0));
  }

  void past_the_end() {
    add(
        "over-read past the end of the sequence",
        [](const Witness& w) { return static_cast<int>(w.home->keys.rows()) - w.home->request.kv_len; },
        [scales = scales_](const Witness& w, int variant) -> std::optional<Imagined> {
          Imagined imagined = faithful(w, scales);
          imagined.visible += 1 + variant;
          if (imagined.visible > w.home->keys.rows()) return std::nullopt;
          return imagined;
        },
        [](const Witness& w, int variant) {
          return fmt::format("request {}: {} keys after the last one were attended to",
                             w.home->request.group.request, variant + 1);
        });
    // Slots that a kernel fills with zeros and forgets to mask: score 0, value 0.
    defects_.push_back({"zero-filled slots not masked", count(least_beyond),
                        [rules = rules_, &profile = profile_, scales = scales_](const Witness& w, int variant,
                                                                                bool with_lse, Fit* fit) {
                          const Index n = w.visible(), slots = variant + 1;
                          Vector dots = Vector::Zero(n + slots);
                          dots.head(n) = w.dots.head(n);
                          Imagined imagined = faithful(w, scales);
                          imagined.visible = n + slots;
                          imagined.dots = &dots;
                          Matrix values;
                          if (with_lse && w.lse != nullptr &&
                              std::abs(imagined_lse(w, imagined) - *w.lse) > 1e-3 * (1 + std::abs(*w.lse)))
                            return false;
                          values = Matrix::Zero(n + slots, w.home->values.cols());
                          values.topRows(n) = w.home->values.topRows(n);
                          imagined.values = &values;
                          return explains(w, imagined, rules, profile, with_lse, fit);
                        },
                        [](const Witness&, int variant) { return fmt::format("{} slots", variant + 1); }});
  }

  void any_tile() {
    struct Place {
      Index tile, first;
    };
    const auto place = [](const Witness& w, int variant) -> std::optional<Place> {
      Index rest = variant;
      for (const int tile : tile_sizes) {
        const Index tiles = (w.walked() + tile - 1) / tile;
        if (rest < tiles) return Place{tile, rest * tile};
        rest -= tiles;
      }
      return std::nullopt;
    };
    const auto variants = [](const Witness& w) {
      Index total = 0;
      if (w.walked() <= longest_tile_walk)
        for (const int tile : tile_sizes) total += (w.walked() + tile - 1) / tile;
      return static_cast<int>(total);
    };
    const auto tile_defect = [&](const char* text, double offset) {
      add(
          text, variants,
          [scales = scales_, place, offset](const Witness& w, int variant) -> std::optional<Imagined> {
            const auto p = place(w, variant);
            if (!p) return std::nullopt;
            return with_group(w, scales, offset,
                              [&](Index j) { return j >= p->first && j < p->first + p->tile; });
          },
          [place](const Witness& w, int variant) {
            const auto p = place(w, variant);
            return p ? fmt::format("keys {} to {}", p->first, p->first + p->tile - 1) : std::string();
          });
    };
    tile_defect("one tile missing", -infinity);
    tile_defect("one tile counted twice", std::log(2.0));
  }

  const MlaLaunch& launch_;
  const reference::AttentionScales scales_;
  Rules rules_;
  const PrecisionProfile& profile_;
  const bool over_reads_;
  bool causal_ = false;
  std::vector<Defect> defects_;
};

}  // namespace

Imagined faithful(const Witness& w, const reference::AttentionScales& scales) {
  Imagined imagined;
  imagined.visible = w.visible();
  imagined.score_scale = scales.sm_scale * scales.q_scale * scales.kv_scale;
  imagined.out_scale = scales.kv_scale;
  return imagined;
}

double imagined_lse(const Witness& w, const Imagined& imagined) {
  const Vector& dots = imagined.dots != nullptr ? *imagined.dots : w.dots;
  double max = -infinity, sum = 0;
  const auto score = [&](Index j) {
    return imagined.score_scale * dots[j] +
           (imagined.offset.empty() ? 0.0 : imagined.offset[static_cast<std::size_t>(j)]);
  };
  for (Index j = 0; j < imagined.visible; ++j) max = std::max(max, score(j));
  for (Index j = 0; j < imagined.visible; ++j) sum += std::exp(score(j) - max);
  return max + std::log(sum);
}

bool explains(const Witness& w, const Imagined& imagined, const Rules& rules, const PrecisionProfile& profile,
              bool with_lse, Fit* fit) {
  const Index n = imagined.visible;
  const double* lse = with_lse ? w.lse : nullptr;
  if (lse == nullptr && !w.failed_elements && !w.failed_as_a_whole) return false;  // it would prove nothing
  if (n <= 0 && fit != nullptr)
    *fit = {static_cast<int>(w.y.size()), static_cast<int>(std::count(w.y.begin(), w.y.end(), 0.0))};
  if (n <= 0)
    return std::all_of(w.y.begin(), w.y.end(), [](double y) { return y == 0; }) &&
           (lse == nullptr || std::isinf(*lse));
  const Vector& dots = imagined.dots != nullptr ? *imagined.dots : w.dots;

  reference::RequestAttention a;
  a.scores.resize(1, n);
  for (Index j = 0; j < n; ++j)
    a.scores(0, j) = imagined.score_scale * dots[j] +
                     (imagined.offset.empty() ? 0.0 : imagined.offset[static_cast<std::size_t>(j)]);
  a.row_max = Vector::Constant(1, a.scores.maxCoeff<Eigen::PropagateNaN>());
  if (!std::isfinite(a.row_max[0])) return false;
  a.weights = (a.scores.array() - a.row_max[0]).exp().matrix();
  a.row_sum = Vector::Constant(1, a.weights.sum());
  a.lse = Vector::Constant(1, a.row_max[0] + std::log(a.row_sum[0]));
  if (lse != nullptr && !(std::abs(a.lse[0] - *lse) < 1e-3 * (1 + std::abs(*lse)))) return false;
  a.weights /= a.row_sum[0];
  a.visible = {static_cast<int>(n)};

  const Matrix& all_values = imagined.values != nullptr ? *imagined.values : w.home->values;
  const ValueColumns values = all_values.topRows(n);
  a.out = imagined.out_scale * (a.weights * values);
  // Other keys have other norms; those of V alone would be too small. The largest ordinary one is near
  // enough.
  const Index known = std::min<Index>(w.home->key_norms.size(), std::max(1, w.home->request.kv_len));
  const double typical = known > 0 ? w.home->key_norms.head(known).maxCoeff() : 0;
  const Vector key_norms = imagined.key_norms != nullptr ? *imagined.key_norms
                           : imagined.values != nullptr || n > w.home->key_norms.size()
                               ? Vector(Vector::Constant(n, typical))
                               : Vector(w.home->key_norms.head(n));
  const Vector q_norms = Vector::Constant(1, w.home->request.q_norms[w.row]);
  const double out_scale = std::abs(imagined.out_scale);
  reference::AttentionScales scales;
  scales.kv_scale = out_scale;
  scales.sm_scale = out_scale > 0 ? imagined.score_scale / out_scale : 0;
  const MlaBound bound = bound_mla({a, values, q_norms, key_norms, scales}, profile);
  Rules here = rules;
  here.statistics = w.failed_as_a_whole;
  const RowResult result = compare_row(w.y, lse, a, bound, 0, here);
  if (fit != nullptr && result.judged)
    *fit = {static_cast<int>(w.y.size()), static_cast<int>(w.y.size()) - result.failing_elements};
  if (!result.judged || result.failed != Stage::none) return false;
  // An lse that did not fit and now does is evidence enough. Without it the imagined result must be nearer as
  // a whole, not only let the worst element in.
  if (!w.failed_elements || (lse != nullptr && w.failed_lse)) return true;
  double before = 0, after = 0;
  for (std::size_t c = 0; c < w.y.size(); ++c) {
    const double cell = rules.grid.step(w.y[c]) / 2;
    const auto excess = [&](double o) { return std::max(0.0, std::abs(w.y[c] - o) - cell); };
    before += std::pow(excess(w.home->request.attention.out(w.row, w.columns[c])), 2);
    after += std::pow(excess(a.out(0, static_cast<Index>(c))), 2);
  }
  return after <= most_left_over * before;
}

std::shared_ptr<const FailedRequest> load_failed_request(const MlaLaunch& launch, int index,
                                                         const std::vector<int>& columns) {
  auto failed = std::make_shared<FailedRequest>();
  failed->request = load_request(launch, index);
  const MlaRequest& request = failed->request;
  const MlaKeys& keys = *launch.problem.keys;
  failed->places = keys.places(index);
  failed->walk = keys.walk(index);
  const int beyond_end = std::max(least_beyond, launch.problem.page_size);
  std::vector<Matrix> beyond;
  for (int t = 0; t < beyond_end; ++t) {
    std::optional<Matrix> row = keys.row_beyond(index, t);
    if (!row) break;
    beyond.push_back(std::move(*row));
  }
  failed->keys.resize(request.kv_len + static_cast<Index>(beyond.size()), row_width);
  failed->keys.topRows(request.kv_len) = request.k;
  for (std::size_t t = 0; t < beyond.size(); ++t)
    failed->keys.row(request.kv_len + static_cast<Index>(t)) = beyond[t].row(0);
  failed->key_norms = row_norms(failed->keys);
  failed->values = sample_columns(failed->keys, columns);
  return failed;
}

std::vector<Defect> imaginable_defects(const MlaLaunch& launch, const Rules& rules,
                                       const PrecisionProfile& profile, bool over_reads) {
  return Catalogue(launch, rules, profile, over_reads).all();
}

}  // namespace attest::oracle
