// SPDX-License-Identifier: MIT
//
// Known causes: cases/causes.json.
//
// One defect shows on many kernels, and under many names: rows that nobody computed hold whatever the scratch
// held, a missing mask is named after the first row that it moves. So a campaign on foreign kernels ends with
// hundreds of findings of two dozen causes, and a new one drowns. This list says what a finding of each cause
// looks like; what fits none of them is new.
//
//   {"schema": 1, "causes": [{
//     "id": "page-size-ignored",
//     "cause": "the page size is overwritten with 1 on entry",     one line
//     "files": ["findings/aiter/page-size-ignored.json"],          failure files that show it, relative to
//                                                                  the list
//     "signs": [{
//       "kernel": ["aiter/*@paged"],                               globs (* and ?)
//       "where": {"shape.page_size": {"min": 2}},                  as in the ledger (fuzz/ledger.h); may be
//                                                                  left out
//       "diagnosis": ["first token of each page only"],            globs; a hazard's are "* waits 0x*" and the like
//       "detail": ["* after the end of Q *"],                      globs; may be left out
//       "schedule": ["delivery=stale"]}]}]}                        the order of events that it needs
//                                                                  (device/simulator/detect/schedule.h); left
//                                                                  out: it shows in the plain one
//
// A finding is of a cause when a sign of it holds in all its members, for the smallest case. Where signs of
// several causes hold, which happens when a case meets several conditions, the first in the list has it: so
// the narrow ones stand first. A sign that says only "this kernel fails" would swallow what nobody knows yet;
// `where` names the condition without which the cause does not strike.
//
// Besides the fields of the case (fuzz/case_fields.h) `where` knows, for ops that have requests:
//
//   requests.without_context            how many with a query, and kv_len 0
//   requests.behind_an_empty_one        with query and context, behind one with kv_len 0
//   requests.without_query              with q_len 0
//   requests.query_longer_than_context  with 0 < kv_len < q_len
//   requests.tokens_per_split           the least kv_len that is not 0, by num_splits, rounded down
//   requests.ragged                     whether the q_len of those that have a query differ
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fuzz/record.h"

namespace attest::fuzz {

struct Sign {
  std::vector<std::string> kernels, diagnoses, details, schedules;
  std::map<std::string, Json> where;
};

struct Cause {
  std::string id, text;
  std::vector<std::string> files;  ///< as paths that can be opened
  std::vector<Sign> signs;
};

/// What a failure file says (fuzz/record.h), as far as signs look at it.
struct Sighting {
  std::string kernel;
  cases::Case c;
  std::string diagnosis, detail, schedule = "plain";

  /// Throws cases::CaseError or UsageError with one line that names the file: no failure file.
  static Sighting read(const std::string& path);
};

class Causes {
 public:
  /// Throws UsageError with one line that names file, cause and field: not JSON, an unknown or missing
  /// member, an id given twice, a file that cannot be read, a `where` on a field that the case of none of its
  /// files has.
  static Causes read(const std::string& path);

  [[nodiscard]] const std::vector<Cause>& all() const { return causes_; }

  /// nullptr: a new one.
  [[nodiscard]] const Cause* of(const Sighting& finding) const;

 private:
  std::vector<Cause> causes_;
};

/// What `where` can speak of.
std::map<std::string, Json> features_of(const cases::Case& c);

}  // namespace attest::fuzz
