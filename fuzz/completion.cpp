// SPDX-License-Identifier: MIT
#include "fuzz/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace attest::fuzz {
namespace {

std::vector<std::string> words_of(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  return words;
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  std::vector<std::string> verbs;
  std::string per_verb;
  for (const CLI::App* verb :
       app.get_subcommands([](const CLI::App* a) { return !a->get_group().empty(); })) {
    verbs.push_back(verb->get_name());
    per_verb += fmt::format("    {}) words=\"{}\" ;;\n", verb->get_name(), fmt::join(words_of(*verb), " "));
  }
  return fmt::format(R"sh(# bash completion for attest: source <(attest completion bash)
_attest() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words=
  case $previous in
    --kernel) COMPREPLY=($(compgen -W "$("$1" kernels 2>/dev/null | awk '$1 ~ "/" {{print $1}}')" -- "$current")); return ;;
    --device) COMPREPLY=($(compgen -W "sim hip" -- "$current")); return ;;
    --resume|--out|--corpus|--regressions|--aiter-hsa) COMPREPLY=($(compgen -d -- "$current")); return ;;
  esac
  case ${{COMP_WORDS[1]}} in
    merge|report) [[ $current == -* ]] || {{ COMPREPLY=($(compgen -d -- "$current")); return; }} ;;
  esac
  case ${{COMP_WORDS[1]}} in
{}    *) words="{} {}" ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then words="{} {}"; fi
  COMPREPLY=($(compgen -W "$words" -- "$current") $(compgen -f -X '!*.json' -- "$current") $(compgen -f -X '!*.safetensors' -- "$current"))
}}
complete -o filenames -o bashdefault -F _attest attest
)sh",
                     per_verb, fmt::join(verbs, " "), fmt::join(words_of(app), " "), fmt::join(verbs, " "),
                     fmt::join(words_of(app), " "));
}

}  // namespace attest::fuzz
