// DeepStorage: a storage whose files say, as those of a real disk do, that several reads pay.
#pragma once

#include <memory>
#include <utility>

#include "tests/support/forwarding_storage.h"

namespace holdfast {

class DeepStorage final : public ForwardingStorage {
 public:
  using ForwardingStorage::ForwardingStorage;

 private:
  class DeepFile final : public ForwardingFile {
   public:
    using ForwardingFile::ForwardingFile;
    size_t read_depth() const override { return 3; }
  };
  std::unique_ptr<File> Wrap(std::unique_ptr<File> file) override {
    return std::make_unique<DeepFile>(std::move(file));
  }
};

}  // namespace holdfast
