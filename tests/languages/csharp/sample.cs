// Counts words.
using System;
using System.Collections.Generic;

namespace Words
{
    public interface ISource
    {
        string Read(int limit);
    }

    [Serializable]
    public class Counter : ISource
    {
        private readonly string text;

        public Counter(string text)
        {
            this.text = text;
        }

        public int Total { get; set; }

        /* Counts
           one text. */
        [Obsolete("use Words")]
        public Dictionary<string, int> Count(
            string extra,
            int limit = 10)
        {
            var found = new Dictionary<string, int>();
            var help = @"
public void NotOne() {
}
";
            void Add(string word)
            {
                found[word] = found.GetValueOrDefault(word) + 1;
            }
            foreach (var word in (text + help + extra).Split(' '))
            {
                if (word.Length > 0)
                {
                    Add(word);
                }
            }
            Total = found.Count;
            return found;
        }

        public string Read(int limit) => text.Substring(0, limit);
    }

    public enum Order
    {
        ByName,
        ByNumber,
    }
}
