#pragma once

namespace holdfast {
class TaskStore;
}  // namespace holdfast
