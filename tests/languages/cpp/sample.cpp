// Words.
#include <string>

namespace words {

enum class Level { Low, High };

template <typename T>
class Words : public Base<T> {
 public:
  explicit Words(const std::string& text)
      : text_(text), total_(0) {
    total_ = text.size();
  }

  ~Words() override = default;

  int total() const {
    std::vector<int> found(10,
                           total_);
    auto walk = [&](int x) {
      return x + 1;
    };
    return walk(total_);
  }

  bool operator==(const Words& other) const { return total_ == other.total_; }

 private:
  std::string text_;
  int total_;
};

template <typename T>
T twice(T value)
{
  const char* help = R"(
int not_one() {
}
)";
  return value + value;
}

void Words<int>::find(const char* name) {
  for (int i = 0; i < 3; ++i) {
    use(name);
  }
}

}  // namespace words
