#include "journal/format/records_text.h"

#include <algorithm>

#include "journal/format/compression.h"

namespace holdfast {
namespace {

// Lays one field after the other down as "name=value".
class TextFields {
 public:
  TextFields(std::string& out, const RecordTextOptions& options) : out_(out), options_(options) {}

  void operator()(const char* name, uint64_t value) { Put(name, std::to_string(value)); }
  void operator()(const char* name, int64_t value) { Put(name, std::to_string(value)); }
  void operator()(const char* name, std::string_view value) { Put(name, NameText(value)); }
  void operator()(const char* name, const StoredEvent& event) {
    Put(name, std::to_string(event.raw_bytes));
    if (event.compressed) Put("stored", std::to_string(event.bytes.size()));
    if (!options_.event) return;
    const StatusOr<std::string> raw = UnpackEvent(event);
    Put("payload", raw.ok() ? NameText(*raw) : "damaged");
  }
  void operator()(const char* name, const StoredAnswers& answers) {
    std::string list;
    ForEachAnswer(answers, [&](Lsn lsn, uint64_t hash) {
      list += fmt::format("{}{}:{:016x}", list.empty() ? "" : ",", lsn, hash);
    });
    Put(name, list.empty() ? "-" : list);
  }
  template <typename T>
  void operator()(const char* name, const std::optional<T>& value) {
    if (value.has_value()) {
      (*this)(name, *value);
    } else {
      Put(name, "-");
    }
  }

 private:
  void Put(std::string_view name, std::string_view value) {
    out_ += ' ';
    out_ += name;
    out_ += '=';
    out_ += value;
  }
  std::string& out_;
  const RecordTextOptions& options_;
};

// The same as members of a JSON object.
class JsonFields {
 public:
  JsonFields(JsonWriter& out, const RecordTextOptions& options) : out_(out), options_(options) {}

  template <typename T>
  void operator()(const char* name, const T& value) {
    out_.Field(name, value);
  }
  void operator()(const char* name, const StoredEvent& event) {
    out_.Key(name).BeginObject().Field("bytes", event.raw_bytes);
    if (event.compressed) out_.Field("stored", event.bytes.size());
    if (options_.event) {
      const StatusOr<std::string> raw = UnpackEvent(event);
      if (raw.ok()) {
        out_.Field("payload", std::string_view(*raw));
      } else {
        out_.Field("damaged", true);
      }
    }
    out_.EndObject();
  }
  void operator()(const char* name, const StoredAnswers& answers) {
    out_.Key(name).BeginArray();
    ForEachAnswer(answers, [&](Lsn lsn, uint64_t hash) {
      out_.BeginObject()
          .Field("lsn", lsn.value())
          .Field("hash", std::string_view(fmt::format("{:016x}", hash)))
          .EndObject();
    });
    out_.EndArray();
  }
  template <typename T>
  void operator()(const char* name, const std::optional<T>& value) {
    if (value.has_value()) {
      (*this)(name, *value);
    } else {
      out_.Key(name).Null();
    }
  }

 private:
  JsonWriter& out_;
  const RecordTextOptions& options_;
};

// Calls `visit(name, value)` for each field of the record, in order.
template <typename Visit>
void ForEachField(const AnyRecord& any, Visit visit) {
  std::visit(
      [&]<typename Record>(const Record& record) {
        std::apply(
            [&](auto... fields) {
              const char* const* name = Record::kFieldNames;
              (visit(*name++, record.*fields), ...);
            },
            Record::Fields());
      },
      any);
}

const char* WhyNot(const Status& status) {
  return status.code() == StatusCode::kUnimplemented ? "unknown" : "damaged";
}

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("._:/-@+#").find(c) != std::string_view::npos;
}

}  // namespace

std::string RecordText(const RawRecord& raw, const RecordTextOptions& options) {
  std::string line = RecordTypeName(raw.header.type);
  const StatusOr<AnyRecord> record = DecodeRecord(raw);
  if (!record.ok()) {
    line += fmt::format(" ({}) version={} flags={} bytes={}", WhyNot(record.status()),
                        raw.header.version, raw.header.flags, raw.fields.size());
    return line;
  }
  ForEachField(*record, TextFields(line, options));
  return line;
}

void RecordJson(const RawRecord& raw, JsonWriter& out, const RecordTextOptions& options) {
  out.Field("type", RecordTypeName(raw.header.type));
  const StatusOr<AnyRecord> record = DecodeRecord(raw);
  if (!record.ok()) {
    out.Field(WhyNot(record.status()), true)
        .Field("version", raw.header.version)
        .Field("flags", raw.header.flags)
        .Field("bytes", raw.fields.size());
    return;
  }
  ForEachField(*record, JsonFields(out, options));
}

std::string NameText(std::string_view name) {
  // A lone "-" stands for an absent value.
  if (!name.empty() && name != "-" && std::all_of(name.begin(), name.end(), IsPlain) &&
      !name.starts_with("base64:")) {
    return std::string(name);
  }
  if (!IsUtf8(name)) return "base64:" + Base64(name);
  std::string quoted;
  JsonWriter(quoted).Value(name);
  return quoted;
}

}  // namespace holdfast
