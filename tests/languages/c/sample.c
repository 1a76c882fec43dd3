/* Words. */
#include <stdio.h>
#define TWICE(x) \
    ((x) * 2)

struct words {
    const char *text;
    int total;
};

typedef struct {
    int x;
} point;

static int helper(int a);

static const char *
count(const char *text,
      int limit)
{
    int total = 0;
    if (limit > 0) {
        total = TWICE(limit);
    }
#ifdef DEBUG
    printf("%d\n",
           total);
#endif
    goto out;
out:
    return text + total;
}

int main(void) {
    struct words w = {
        .text = "int not_one(void) {",
    };
    // Done.
    return helper(w.total);
}
