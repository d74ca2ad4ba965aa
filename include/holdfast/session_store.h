#pragma once

namespace holdfast {
class SessionStore;
}  // namespace holdfast
