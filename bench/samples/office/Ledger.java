package depot.ledger;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.time.LocalDate;
import java.time.YearMonth;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Collectors;

/** The depot's books: what customers owe for the parcels of a month. */
public final class Ledger {

  private static final BigDecimal TAX = new BigDecimal("0.19");
  private static final BigDecimal FUEL_SHARE = new BigDecimal("0.0475");
  private static final BigDecimal SMALLEST_INVOICE = new BigDecimal("2.50");
  private static final int DAYS_TO_PAY = 14;

  private final List<Booking> bookings = new ArrayList<>();
  private final Map<String, Customer> customers = new LinkedHashMap<>();

  /** A customer with the terms that were agreed. */
  public record Customer(String id, String name, List<Discount> discounts) {
    public Customer {
      Objects.requireNonNull(id, "id");
      Objects.requireNonNull(name, "name");
      discounts = List.copyOf(discounts);
    }

    public Optional<Discount> discountFor(int parcels) {
      return discounts.stream()
          .filter(discount -> discount.fromParcels() <= parcels)
          .max(Comparator.comparingInt(Discount::fromParcels));
    }
  }

  /** A share that is taken off from a number of parcels on. */
  public record Discount(int fromParcels, BigDecimal share) {
    public Discount {
      if (fromParcels < 1) {
        throw new IllegalArgumentException("a discount starts at one parcel or more");
      }
      if (share.signum() < 0 || share.compareTo(BigDecimal.ONE) > 0) {
        throw new IllegalArgumentException("a discount's share is between 0 and 1");
      }
    }
  }

  /** One delivered parcel. */
  public record Booking(String customerId, String parcelId, LocalDate day, BigDecimal price) {
    public Booking {
      Objects.requireNonNull(customerId, "customerId");
      Objects.requireNonNull(parcelId, "parcelId");
      Objects.requireNonNull(day, "day");
      if (price.signum() < 0) {
        throw new IllegalArgumentException(parcelId + ": the price is negative");
      }
    }
  }

  /** What a customer has to pay for one month. */
  public record Invoice(
      Customer customer,
      YearMonth month,
      List<Booking> bookings,
      BigDecimal net,
      BigDecimal tax,
      LocalDate due) {

    public BigDecimal gross() {
      return net.add(tax);
    }

    public int parcels() {
      return bookings.size();
    }
  }

  public void addCustomer(Customer customer) {
    if (customers.putIfAbsent(customer.id(), customer) != null) {
      throw new IllegalArgumentException("customer " + customer.id() + " exists already");
    }
  }

  public Customer customer(String id) {
    Customer customer = customers.get(id);
    if (customer == null) {
      throw new IllegalArgumentException("no customer " + id);
    }
    return customer;
  }

  public void book(Booking booking) {
    customer(booking.customerId());
    boolean isKnown =
        bookings.stream().anyMatch(each -> each.parcelId().equals(booking.parcelId()));
    if (isKnown) {
      throw new IllegalStateException(booking.parcelId() + " is booked already");
    }
    bookings.add(booking);
  }

  public List<Booking> bookings() {
    return Collections.unmodifiableList(bookings);
  }

  public List<Booking> bookingsOf(String customerId, YearMonth month) {
    return bookings.stream()
        .filter(booking -> booking.customerId().equals(customerId))
        .filter(booking -> YearMonth.from(booking.day()).equals(month))
        .sorted(Comparator.comparing(Booking::day).thenComparing(Booking::parcelId))
        .toList();
  }

  public List<Invoice> close(YearMonth month) {
    List<Invoice> invoices = new ArrayList<>();
    for (Customer customer : customers.values()) {
      List<Booking> found = bookingsOf(customer.id(), month);
      if (found.isEmpty()) {
        continue;
      }
      invoice(customer, month, found).ifPresent(invoices::add);
    }
    return invoices;
  }

  /** The fuel share comes before the discount, and tax after both; cents round half even. */
  private Optional<Invoice> invoice(Customer customer, YearMonth month, List<Booking> found) {
    BigDecimal sum =
        found.stream().map(Booking::price).reduce(BigDecimal.ZERO, BigDecimal::add);
    BigDecimal withFuel = sum.multiply(BigDecimal.ONE.add(FUEL_SHARE));
    BigDecimal off =
        customer.discountFor(found.size()).map(Discount::share).orElse(BigDecimal.ZERO);
    BigDecimal net = cents(withFuel.multiply(BigDecimal.ONE.subtract(off)));
    if (net.compareTo(SMALLEST_INVOICE) < 0) {
      return Optional.empty();
    }
    BigDecimal tax = cents(net.multiply(TAX));
    LocalDate due = month.atEndOfMonth().plusDays(DAYS_TO_PAY);
    return Optional.of(new Invoice(customer, month, found, net, tax, due));
  }

  private static BigDecimal cents(BigDecimal value) {
    return value.setScale(2, RoundingMode.HALF_EVEN);
  }

  public Map<YearMonth, BigDecimal> revenueByMonth() {
    return bookings.stream()
        .collect(
            Collectors.groupingBy(
                booking -> YearMonth.from(booking.day()),
                LinkedHashMap::new,
                Collectors.reducing(BigDecimal.ZERO, Booking::price, BigDecimal::add)));
  }

  public Optional<Customer> bestCustomer(YearMonth month) {
    return close(month).stream()
        .max(Comparator.comparing(Invoice::net))
        .map(Invoice::customer);
  }

  /** An invoice as text, one line per parcel. */
  public static String render(Invoice invoice) {
    StringBuilder text = new StringBuilder();
    text.append(invoice.customer().name()).append(", ").append(invoice.month()).append('\n');
    for (Booking booking : invoice.bookings()) {
      text.append(String.format("  %s  %s  %8.2f%n", booking.day(), booking.parcelId(), booking.price()));
    }
    text.append(String.format("  net %.2f, tax %.2f, total %.2f%n", invoice.net(), invoice.tax(), invoice.gross()));
    text.append("  due ").append(invoice.due()).append('\n');
    return text.toString();
  }

  /** Builds customers step by step. */
  public static final class CustomerBuilder {
    private final String id;
    private String name = "";
    private final List<Discount> discounts = new ArrayList<>();

    public CustomerBuilder(String id) {
      this.id = id;
    }

    public CustomerBuilder name(String value) {
      this.name = value;
      return this;
    }

    public CustomerBuilder discount(int fromParcels, String share) {
      discounts.add(new Discount(fromParcels, new BigDecimal(share)));
      return this;
    }

    public Customer build() {
      return new Customer(id, name, discounts);
    }
  }
}
