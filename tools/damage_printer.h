// Damage and torn tails as lines: text, or one JSON object each.
#pragma once

#include <string>

#include "recovery/survey.h"

namespace holdfast {

// Says where it starts and where healthy data goes on. One line without its end.
std::string DamageText(const Damage& damage);
std::string DamageJson(const Damage& damage);

std::string TornTailText(const TornTail& torn);

// "clean", "torn-tail" or "damage".
const char* VerdictName(SurveyVerdict verdict);
// The exit code of a command that judged a store.
int VerdictExitCode(SurveyVerdict verdict);

}  // namespace holdfast
