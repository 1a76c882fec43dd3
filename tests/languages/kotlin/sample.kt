// Counts words.
package words

import java.io.File
import kotlin.math.max

const val LIMIT = 10

interface Source {
    fun read(limit: Int): String
}

/* Counts
   one text. */
class Counter(private val text: String) : Source {
    var total = 0

    @Deprecated("use words")
    fun count(
        extra: String,
        limit: Int = LIMIT,
    ): Map<String, Int> {
        val found = mutableMapOf<String, Int>()
        val help = """
fun notOne() {
}
"""
        fun add(word: String) {
            found[word] = max(found[word] ?: 0, 0) + 1
        }
        for (word in (text + help + extra).split(" ")) {
            if (word.isNotEmpty()) {
                add(word)
            }
        }
        total = found.size
        return found
    }

    override fun read(limit: Int): String = text.take(limit)
}

object Files {
    fun open(name: String) = File(name)
}

fun main() {
    println(Counter("a b a").count(""))
}
